// What the policies are allowed and what came of it: modes, the guards of those that learn,
// measured outcomes, and the events that an operator should know of. There is one for each kind of
// decision with policies that learn. Modes, standings and events survive a restart; measurements
// begin anew. Event loop thread only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "coordinator/model.h"
#include "coordinator/store/store.h"
#include "policies/interface/values.h"
#include "policies/learning/guard.h"
#include "policies/placement/measures.h"

namespace tierpilot {

struct OversightSettings {
  GuardSettings guard;
  std::vector<BoundedMeasure> measures = placement_measures();
  PolicyMode mode = PolicyMode::kEnforce;  // of a policy that was never given another one
  // How much dearer the heuristic may find what it is advised (time to the end, the time for data
  // counted twice), as a share of its own choice's cost.
  double advice_band = 0.1;
  uint64_t seed = 1;
};

class Oversight {
 public:
  struct Turn {
    std::string policy;
    Guard::Ticket ticket;
    PolicyMode mode = PolicyMode::kEnforce;
    double estimate_s = 0;  // the best candidate's time to the finish, when it was first asked

    bool asks() const { return ticket.arm == Arm::kPolicy || ticket.arm == Arm::kShadow; }
  };
  struct Tally {
    std::array<uint64_t, kDecisionFaults> faults{};
    uint64_t asked = 0;
    uint64_t advised = 0;   // in advise mode or in shadow, with the heuristic's choice known
    uint64_t differed = 0;  // of them, where the policy wanted another node
    uint64_t followed = 0;  // of those, where it got it
    uint64_t control = 0;   // decisions of the heuristic, to compare
  };
  // By place in OversightSettings::measures.
  using Measured = std::vector<MeanInterval>;

  Oversight(Store& store, const Clock& clock) : store_(store), clock_(clock) {}

  // Takes up what the store has. `learned`: the policies that have a guard, and which measure they
  // are judged by.
  Status begin(OversightSettings settings, const std::map<std::string, std::string>& learned);

  // It was drawn under the policy's present standing.
  bool stands(const Turn& turn) const;
  // Who takes the next decision while `policy` is the active one.
  Turn next(const std::string& policy);
  void answered(const Turn& turn, DecisionFault fault);
  // The heuristic's choice was known when the policy's was taken, or not.
  void compared(const Turn& turn, bool differs, bool followed);
  void rewarded(const Turn& turn, double reward);
  void finished(const Turn& turn, double response_s);
  // By the measure's place in the settings.
  void measured(const Turn& turn, size_t measure, double value);

  // At once; `durable` hears when it is on disk, or why it is not. kInvalid: it does not learn.
  Status set_mode(const std::string& policy, PolicyMode mode, Store::Done durable = nullptr);
  // Tries again to write what could not be written.
  void retry();
  // It decides by other weights now.
  void start_anew(const std::string& policy, const std::string& why);

  const OversightSettings& settings() const { return settings_; }
  // Null: it has none.
  const Guard* guard(const std::string& policy) const;
  const Tally& tally(const std::string& policy) { return subjects_[policy].tally; }
  // Of decisions that the policy itself took, since the start of the program.
  Measured measured(const std::string& policy);
  // Newest first; an empty name: of all.
  Result<std::vector<PolicyEvent>> events(const std::string& policy, uint32_t limit);

  // Called after a policy was deposed.
  std::function<void(const std::string& policy, const std::string& why)> on_deposed;

 private:
  struct Subject {
    std::optional<Guard> guard;
    Tally tally;
    std::vector<ConfidenceSequence> measured;  // of its own decisions, by measure
    bool unwritten = false;                    // its standing could not be written
  };

  Subject& subject(const std::string& policy);
  void write_changes(const std::string& policy, Subject& subject, Store::Done durable = nullptr);
  void write_standing(const std::string& policy, Subject& subject, Store::Done durable);
  void record(PolicyEvent event);

  Store& store_;
  const Clock& clock_;
  OversightSettings settings_;
  std::map<std::string, Subject> subjects_;
  RelativeResponse relative_;
  std::mt19937_64 generator_;
};

}  // namespace tierpilot
