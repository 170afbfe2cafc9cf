// Hosts the policies: one thread decides, another one learns, and neither waits for the other.
//
// Every measured outcome is learned from, whichever policy had decided: Q-learning is off-policy,
// so the network has seen the cluster before its turn comes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "coordinator/policy_host/decision_thread.h"
#include "policies/dqn/settings.h"
#include "policies/registry.h"
#include "policies/values.h"

namespace tierpilot {

struct PolicyHostOptions {
  DqnSettings settings;
  uint64_t seed = 1;
  std::filesystem::path state_dir;  // made if missing; empty: nothing is kept over a restart
  std::string active = "dqn";
  size_t pending_capacity = 16384;  // 1.5 KB each, twice that when the next request's is not kept
  int64_t save_interval_ms = 300'000;
};

struct LearnerState {
  uint64_t decisions = 0;
  uint64_t experiences = 0;  // complete, without duplicates
  uint64_t duplicates = 0;   // since the start of the program, as the next two
  uint64_t pending_dropped = 0;
  uint64_t pending = 0;
  uint64_t replay_size = 0;
  uint64_t training_steps = 0;
  uint64_t weights_version = 0;
  double epsilon = 0;
  std::optional<double> loss;  // no batch was trained yet
  std::string note;  // what an operator should know: state not taken over, training failed
};

class PolicyHost {
 public:
  using Decided = tierpilot::Decided;
  struct ListedPolicy : PolicyInfo {
    bool active = false;
  };

  // A checkpoint that is damaged, or of another network, is set aside with an error in the log and
  // in LearnerState::note, and learning starts anew. One that cannot be read at all is an error.
  static Result<std::unique_ptr<PolicyHost>> start(PolicyHostOptions options);
  // Saves. No `done` runs any more when it returns.
  ~PolicyHost();

  // All of the following may be called from any thread.

  // Decisions are taken in order. `done` runs on the decision thread, at most once, and not at all
  // when the request was overridden or abandoned first. Ids must be unique, over restarts too.
  void decide(uint64_t id, View view, std::function<void(Decided)> done);
  // The coordinator took another action than was (or would be) decided.
  void override_action(uint64_t id, const View& view, size_t node);
  // The measured reward, in any order and however late. An unknown id is ignored.
  void outcome(uint64_t id, const RewardParts& reward);
  // There will be no outcome.
  void abandon(uint64_t id);

  // kNotFound lists the names. The dqn begins with the newest weights.
  Status use(std::string_view name);
  std::string active() const;
  std::vector<ListedPolicy> list() const;
  LearnerState learner() const;
  // Weights, replay and pending experiences. Waits for the training thread, which finishes its
  // batch first (0.1 s, more when it gets little of a core): not for an event loop.
  Status save();

 private:
  struct Parts;
  explicit PolicyHost(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace tierpilot
