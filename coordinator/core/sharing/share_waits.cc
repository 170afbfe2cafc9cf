#include "coordinator/core/sharing/share_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "policies/sharing/live/share_policy.h"

namespace tierpilot {

std::vector<uint64_t> waiting_for_shares(const ClusterState& state) {
  std::array<std::vector<uint64_t>, 3> by_rank;
  for (const auto& place : state.tasks.shared_queue()) {
    const auto& task = *state.tasks.find(place.second);
    const bool is_sensitive = task.spec.share.latency_sensitive;
    by_rank[!is_sensitive ? 2 : has_promise_to_keep(state, task) ? 0 : 1].push_back(task.id);
  }
  std::vector<uint64_t> ids;
  for (const auto& rank : by_rank) ids.insert(ids.end(), rank.begin(), rank.end());
  return ids;
}

bool waited_too_long(const Task& task, int64_t now_ms) {
  const bool has_ended = is_ended(task.state);
  const bool waited = has_ended ? task.started_ms == 0 : task.state == TaskState::kQueued;
  return is_on_trial(task) && waited &&
         (has_ended ? task.finished_ms : now_ms) >= task.submitted_ms + task.spec.share.promise_ms;
}

double promise_left_s(const ClusterState& state, const Task& task) {
  const bool is_not_made = task.share && task.share->trial_end == TrialEnd::kNotMade;
  const bool has_ended = is_ended(task.state);
  if (task.spec.share.promise_ms == 0 || is_not_made || (has_ended && is_on_trial(task)) ||
      waited_too_long(task, state.clock.wall_ms()))
    return sharing::kNoPromise;
  const int64_t at_ms = has_ended ? task.finished_ms : state.clock.wall_ms();
  return static_cast<double>(task.submitted_ms + task.spec.share.promise_ms - at_ms) / 1e3;
}

bool has_promise_to_keep(const ClusterState& state, const Task& task) {
  const double left_s = promise_left_s(state, task);
  return left_s > 0 && left_s < sharing::kNoPromise;
}

std::set<Engine> engines_with_promises(const ClusterState& state) {
  std::set<Engine> engines;
  for (const auto& place : state.tasks.shared_queue()) {
    const auto& task = *state.tasks.find(place.second);
    if (!is_on_trial(task) && has_promise_to_keep(state, task))
      engines.insert(task.spec.share.engine);
  }
  return engines;
}

std::string missing_units(const ClusterState& state, const TaskSpec& spec) {
  const char* const what = spec.has_gpu_share() ? "GPUs" : "cores";
  if (spec.node.empty()) {
    const auto& up = state.registry.up();
    const bool any = std::any_of(up.begin(), up.end(), [&](const NodeRecord* node) {
      const auto& units = node->facts.shared_units;
      return node->can_be_asked() && std::any_of(units.begin(), units.end(), [&](const auto& unit) {
               return unit.engine() == spec.share.engine;
             });
    });
    return fmt::format("a node with {} that are shared: {}", what,
                       any ? "none of those that are up takes tasks" : "none is up");
  }
  const auto why = [&]() -> std::string {
    const auto* node = state.registry.find(spec.node);
    if (!node) return "it has not joined";
    if (node->life != NodeLife::kUp) return fmt::format("it is {}", node->life_name());
    if (!node->link) return "it is not connected";
    const auto closed = node->closed_because();
    return closed.empty() ? "it shares none" : "it is closed: " + closed;
  };
  return fmt::format("{} that are shared on node '{}': {}", what, spec.node, why());
}

std::string too_little_free(const std::vector<sharing::LiveNode>& nodes,
                            const sharing::WaitingJob& job) {
  uint32_t most = 0, needed = 0;
  bool any = false;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const auto& unit : nodes[n]) {
      const auto predicted = job.predicted.find(unit.type);
      if (predicted == job.predicted.end() || job.only_node.value_or(n) != n) continue;
      any = true;
      needed = job.asked.milli > 0 ? job.asked.milli : predicted->second.milli;
      const auto free = unit.free();
      if (free.milli >= needed && free.memory_bytes >= job.memory_bytes_on(predicted->second))
        return {};
      most = std::max(most, free.milli);
    }
  if (!any) return {};
  if (most >= needed) return "a share of a unit: none has its memory free";
  return fmt::format(
      "a share of a unit: it is to have {} thousandths, and the most that one has free is "
      "{}",
      needed, most);
}

bool all_are_closed(const std::vector<sharing::LiveNode>& nodes, const sharing::WaitingJob& job) {
  bool any = false;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const auto& unit : nodes[n]) {
      if (job.only_node.value_or(n) != n) continue;
      if (job.predicted.contains(unit.type)) return false;
      any = any || unit.type.empty();
    }
  return any;
}

std::string too_little_memory(const std::vector<sharing::LiveNode>& nodes,
                              const sharing::WaitingJob& job) {
  uint64_t most = 0, least_needed = UINT64_MAX;
  for (size_t n = 0; n < nodes.size(); ++n)
    for (const auto& unit : nodes[n]) {
      const auto predicted = job.predicted.find(unit.type);
      if (predicted == job.predicted.end() || job.only_node.value_or(n) != n) continue;
      const uint64_t needed = job.memory_bytes_on(predicted->second);
      if (needed <= unit.whole.memory_bytes) return {};
      most = std::max(most, unit.whole.memory_bytes);
      least_needed = std::min(least_needed, needed);
    }
  if (least_needed == UINT64_MAX) return {};
  return fmt::format("a unit with {} of memory: the most that one has is {}",
                     format_bytes(least_needed), format_bytes(most));
}

}  // namespace tierpilot
