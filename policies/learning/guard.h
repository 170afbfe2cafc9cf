// Watches a learned policy: holds what it earns against what the fallback heuristic earns at the
// same time, takes its decisions from it when it is worse, and gives them back by degrees.
//
//   trusted    the policy decides, but for a control share that is drawn by chance
//   deposed    the heuristic decides; the policy is asked now and then, and its answers are checked
//   probation  the policy decides a small share, which grows while it is no worse
//
// It is pure: no clock, no thread, and chance comes in as a number. Counted in decisions, so that
// the same object runs in the coordinator and in a simulation.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/policy_standing.h"
#include "policies/interface/values.h"
#include "policies/learning/bounded_measure.h"
#include "policies/learning/confidence.h"

namespace tierpilot {

struct GuardSettings {
  bool on = true;
  double control_share = 0.05;
  // Chance that a policy that is as good as the heuristic is deposed within one round. A round
  // ends with so many measured decisions of the heuristic, and the comparison starts anew: what a
  // policy earned long ago does not cover what it costs now.
  double false_alarm = 0.01;
  uint64_t round_outcomes = 1000;
  // So many bad answers (faults) among the last 100 depose as well.
  uint32_t faults_to_depose = 20;
  // Answers that a deposed policy must give before its probation; doubled each time it is deposed
  // again, up to 64 times.
  uint64_t shadow_answers = 100;
  double shadow_share = 0.1;  // of decisions in which a deposed policy is asked
  // Measured decisions of the policy in each step of the probation, and how much worse than the
  // heuristic, as a share of the measure's range, it may look to get on.
  uint64_t step_outcomes = 50;
  double tolerance = 0.01;
  std::string judged = "reward";  // the measure that decides
};

// The policy against the heuristic in one measure.
class ArmComparison {
 public:
  ArmComparison(BoundedMeasure measure, double false_alarm);

  void add(bool by_policy, double value) { (by_policy ? policy_ : control_).add(value); }
  const BoundedMeasure& measure() const { return measure_; }
  MeanInterval policy() const { return policy_.interval(); }
  MeanInterval control() const { return control_.interval(); }
  // No look at any time says so wrongly, but with the chance that is set.
  bool policy_is_worse() const;
  // Of the policy over the heuristic, as a share of the range; negative: it looks worse.
  double advantage() const;
  std::string text() const;

 private:
  BoundedMeasure measure_;
  ConfidenceSequence policy_;
  ConfidenceSequence control_;
};

struct GuardEvent {
  std::string what;  // "deposed", "on probation", "share raised", "trusted"
  std::string why;
};

// What is kept over a restart; a round begins anew.
struct GuardMemory {
  PolicyMode mode = PolicyMode::kEnforce;
  Standing standing = Standing::kTrusted;
  uint32_t step = 0;      // of the probation
  uint32_t setbacks = 0;  // depositions since it was last trusted for a whole round
  std::string why;        // of the last change of standing
};

class Guard {
 public:
  // Outcomes of decisions under an earlier standing do not count.
  struct Ticket {
    Arm arm = Arm::kPolicy;
    uint64_t era = 0;
  };

  // Arms are compared in all of `measures`; GuardSettings::judged is one of them, which throws
  // std::invalid_argument otherwise.
  Guard(GuardSettings settings, std::vector<BoundedMeasure> measures, GuardMemory memory = {});

  // Who takes the next decision; `chance` is uniform in [0, 1).
  Ticket next(double chance) const;
  // What became of asking the policy.
  void answered(DecisionFault fault);
  // `measure`: its place among those that the guard was given.
  void measured(size_t measure, const Ticket& ticket, double value);

  // An operator's word: the policy is trusted, and what was measured counts no more.
  void set_mode(PolicyMode mode);
  // The policy is another one now (other weights): compare anew.
  void start_anew();

  const GuardMemory& memory() const { return memory_; }
  // Of tickets that count.
  uint64_t era() const { return era_; }
  size_t judged() const { return judged_; }
  // Share of decisions that the policy has now.
  double policy_share() const;
  // Of this round, or of the one before while this one is young.
  const ArmComparison& comparison(size_t measure) const;
  // Since the last call.
  std::vector<GuardEvent> take_events() { return std::exchange(events_, {}); }

 private:
  using Round = std::vector<ArmComparison>;

  Round fresh_round() const;
  void end_round();
  void judge();
  void depose(std::string why);
  void enter(Standing standing, std::string what, std::string why);
  void forget_faults();

  GuardSettings settings_;
  std::vector<BoundedMeasure> measures_;
  size_t judged_ = 0;
  GuardMemory memory_;
  uint64_t era_ = 0;
  Round round_;
  std::optional<Round> last_round_;
  uint64_t shadow_answers_ = 0;  // since it was deposed
  std::bitset<100> faulty_;      // ring of the last answers
  uint64_t answers_ = 0;
  std::vector<GuardEvent> events_;
};

}  // namespace tierpilot
