// A policy that learns under its guard, as the coordinator has it
// (coordinator/core/dispatch/dispatcher.cc): a control share of the decisions and those that it
// cannot take are the fallback's, and it is deposed where what is measured of it is worse. Its
// learner is told of all decisions, also of those that were not its own; without one, what its
// weights never saw stays unfamiliar. Tell it of a simulation's outcomes as its listener.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <random>

#include "policies/interface/policy.h"
#include "policies/learning/guard.h"
#include "policies/placement/measures.h"
#include "policies/sim/player.h"

namespace tierpilot::sim {

// Of one run.
struct GuardTally {
  uint64_t control = 0;  // decisions of the fallback, to compare with
  uint64_t alone = 0;    // of the fallback, while the policy was deposed
  uint64_t faults = 0;   // of the fallback, since the policy's answer could not be used
  uint64_t deposed = 0;  // times
};

class GuardedPolicy final : public Policy, public Listener {
 public:
  GuardedPolicy(Player player, const GuardSettings& settings, uint64_t seed);

  Decision decide(const View& view) override;
  bool holds() const override { return true; }  // the fallback does

  void asks(Attempt attempt) override;
  void decided(Attempt attempt, const View& view, const Decision& decision) override;
  void served(Attempt attempt, const ServiceMeasure& measure, const RewardParts& reward) override;
  void abandoned(Attempt attempt) override;
  void finished(Attempt attempt, const TaskTimes& times) override;

  const GuardTally& tally() const { return tally_; }

 private:
  struct Turn {
    Guard::Ticket ticket;
    double estimate_s = 0;
    bool anew = false;  // another arm had kept the task back before
  };

  Turn next_turn(const View& view);
  Decision choose(const View& view);
  Decision ask(const View& view);
  void count_events();

  Player player_;
  Guard guard_;
  RelativeResponse relative_;
  std::mt19937_64 generator_;
  uint32_t task_ = 0;                // that is asked about
  Turn turn_;                        // of the decision that was just taken
  std::map<uint32_t, Turn> held_;    // by task that is kept back
  std::map<uint32_t, Turn> placed_;  // by task
  GuardTally tally_;
};

}  // namespace tierpilot::sim
