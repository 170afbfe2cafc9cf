// Hosts the policies: one thread decides, another one learns, and neither waits for the other.
//
// Every measured outcome is learned from, whichever policy had decided, so that a policy has seen
// the cluster before its turn comes. Learners that cost much sleep until their policy is used
// (LearningModule::Traits::learns_always).
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
#include "policies/interface/values.h"
#include "policies/learning/training_pace.h"
#include "policies/placement/registry.h"

namespace tierpilot {

struct PolicyHostOptions {
  PlacementModules modules = placement_modules();
  TrainingPace pace;
  uint64_t seed = 1;
  std::filesystem::path state_dir;  // made if missing; empty: nothing is kept over a restart
  std::string active = kDefaultPolicy;
  size_t pending_capacity = 16384;  // of each learner; 2 to 5 KB each
  int64_t save_interval_ms = 300'000;
  size_t versions_kept = 10;  // of each policy's weights
};

struct LearnerState : LearnerCounters {
  double epsilon = 0;
  std::vector<WeightsVersion> versions;  // oldest first
  std::string origin;                    // what its learning began from
  std::string note;  // what an operator should know: state not taken over, training failed
};

class PolicyHost {
 public:
  using Decided = tierpilot::Decided;

  // A checkpoint that is damaged, or of another network, is set aside with an error in the log and
  // in LearnerState::note, and learning starts anew. One that cannot be read at all is an error, as
  // are configured weights (DqnSettings::weights) that are missing or do not fit. A checkpoint has
  // learned further than those weights, and comes before them.
  static Result<std::unique_ptr<PolicyHost>> start(PolicyHostOptions options);
  // Saves. No `done` runs any more when it returns.
  ~PolicyHost();

  // All of the following may be called from any thread.

  // Decisions are taken in order. `done` runs on the decision thread, at most once, and not at all
  // when the request was dismissed first. No two requests have the same number.
  void decide(uint64_t request, std::shared_ptr<const View> view,
              std::function<void(Decided)> done);
  // A decision of the active policy's on the calling thread, if it is quick: heuristics are, one
  // that learns has to show it (SharedPolicy). Empty: it has to be asked by decide().
  std::optional<Decided> decide_at_once(uint64_t request, const View& view);
  // Nobody waits for the answer any more.
  void dismiss(uint64_t request);
  // The action that the coordinator took, as decided or not; learning knows it by `id` from now on,
  // which must be unique, over restarts too. An answer alone is not learned from: it may have come
  // too late.
  void took(uint64_t id, std::shared_ptr<const View> view, size_t node);
  // What was measured, in any order and however late; an unknown id is ignored.
  void told(uint64_t id, const Outcome& outcome);

  // kNotFound lists the names. A policy that learns begins with the newest weights.
  Status use(std::string_view name);
  std::string active() const;
  const PlacementModules& modules() const;
  // Of a policy that learns; the training thread's counters lag a batch behind. Else nothing.
  LearnerState learner(const std::string& policy) const;
  // False: there is no state directory, or none are to be kept.
  bool keeps_versions() const;
  // See TrainingThread. `done` runs on the training thread.
  void keep_version(const std::string& policy, WeightsVersion about,
                    TrainingThread::VersionDone done = nullptr);
  void roll_back(const std::string& policy, uint64_t number, WeightsVersion about,
                 TrainingThread::VersionDone done);
  // Weights, replay and pending experiences of the learners that are awake. Waits for the training
  // thread, which finishes its batch first (0.1 s, more when it gets little of a core): not for an
  // event loop.
  Status save();

 private:
  struct Parts;
  explicit PolicyHost(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace tierpilot
