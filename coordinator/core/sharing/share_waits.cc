#include "coordinator/core/sharing/share_waits.h"

#include <algorithm>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot {

std::vector<uint64_t> waiting_for_shares(const TaskBook& tasks) {
  std::vector<uint64_t> ids;
  for (const auto& place : tasks.shared_queue()) ids.push_back(place.second);
  std::stable_partition(ids.begin(), ids.end(),
                        [&](uint64_t id) { return tasks.find(id)->spec.share.latency_sensitive; });
  return ids;
}

double promise_left_s(const ClusterState& state, const Task& task) {
  const bool is_not_made = task.share && task.share->trial_end == TrialEnd::kNotMade;
  if (task.spec.share.promise_ms == 0 || is_not_made) return sharing::kNoPromise;
  return static_cast<double>(task.submitted_ms + task.spec.share.promise_ms -
                             state.clock.wall_ms()) /
         1e3;
}

}  // namespace tierpilot
