// Where a task starts: on units that it may use, and first on the one that is kept for it.
#include <algorithm>
#include <utility>

#include "coordinator/core/sharing/share_keeper.h"

namespace tierpilot {

using sharing::ClosedUnits;
using sharing::WaitingPromises;

std::optional<sharing::Start> ShareKeeper::start_for(const Task& task, Units& units,
                                                     const sharing::WaitingJob& job,
                                                     WaitingPromises& promises) {
  std::optional<sharing::Start> on_kept;
  if (has_kept_unit(task.id)) {
    on_kept = start_on_kept(task, units, job);
    if (on_kept && on_kept->preempted.empty()) return on_kept;
    if (!on_kept) let_go(task.id);
  }
  auto start = start_elsewhere(task, units, job, promises);
  // While others end for it, only where nobody has to.
  return on_kept && !(start && start->preempted.empty()) ? on_kept : start;
}

// Where it breaks no promise to others that wait.
std::optional<sharing::Start> ShareKeeper::start_elsewhere(const Task& task, Units& units,
                                                           const sharing::WaitingJob& job,
                                                           WaitingPromises& promises) {
  std::vector<std::pair<size_t, size_t>> shut;
  while (shut.size() < WaitingPromises::kMostTries) {
    auto start = start_on_open(task, units, job, shut);
    if (!start || !promises.would_break(units.live, job, *start)) return start;
    shut.emplace_back(start->node, start->unit);
  }
  return std::nullopt;
}

std::optional<sharing::Start> ShareKeeper::start_on_open(
    const Task& task, Units& units, const sharing::WaitingJob& job,
    const std::vector<std::pair<size_t, size_t>>& shut) {
  ClosedUnits closed;
  for (const auto& [n, u] : shut) closed.close(units.live[n][u]);
  for (size_t n = 0; n < units.live.size(); ++n) {
    const auto& node = *units.nodes[n];
    const bool refuses = node_refuses(task, node) != nullptr;
    if (!refuses && kept_for_.empty()) continue;
    for (size_t u = 0; u < units.live[n].size(); ++u)
      if (refuses || kept_for_.contains({node.facts.name, u})) closed.close(units.live[n][u]);
  }
  return policy_->place(units.live, job);
}

std::optional<sharing::Start> ShareKeeper::start_on_kept(const Task& task, Units& units,
                                                         const sharing::WaitingJob& job) {
  ClosedUnits closed;
  sharing::LiveUnit* kept = nullptr;
  for (size_t n = 0; n < units.live.size(); ++n)
    for (size_t u = 0; u < units.live[n].size(); ++u) {
      const auto found = kept_for_.find({units.nodes[n]->facts.name, u});
      if (found != kept_for_.end() && found->second == task.id &&
          !node_refuses(task, *units.nodes[n]))
        kept = &units.live[n][u];
      else
        closed.close(units.live[n][u]);
    }
  if (!kept) return std::nullopt;
  const auto there = kept->jobs;
  std::erase_if(kept->jobs, [](const sharing::LiveJob& other) { return other.leaves; });
  auto start = policy_->place(units.live, job);
  kept->jobs = there;
  if (start)
    for (const auto& other : there)
      if (other.leaves) start->preempted.push_back(other.id);
  return start;
}

}  // namespace tierpilot
