#include "coordinator/core/elastic/lent_ranks.h"

#include <algorithm>
#include <set>
#include <string>

#include "coordinator/core/gangs/gang_plan.h"

namespace tierpilot {
namespace {

constexpr size_t kMostLookedAt = 256;  // of the queue

// GPUs, or units of nodes' CPUs.
uint64_t need_of(const TaskSpec& spec, bool of_gpus) {
  const uint64_t each = of_gpus ? spec.gang.gpus_per_rank : spec.units;
  return spec.is_gang() ? spec.gang.ranks * each : each;
}

// Not for data, or for a node that has its data.
bool waits_for_units(const ClusterState& state, uint64_t id) {
  const auto* task = state.tasks.find(id);
  return task && !state.held.waits(id) && state.blocked_by(*task).empty();
}

std::set<std::string> nodes_of(const ClusterState& state, const Task& gang) {
  std::set<std::string> nodes;
  for (const uint64_t id : state.tasks.ranks_tried(gang)) nodes.insert(state.tasks.find(id)->node);
  return nodes;
}

// Units of CPUs that tasks wait for which these nodes have been given already.
uint64_t backlog_units(const ClusterState& state, const std::set<std::string>& nodes) {
  uint64_t units = 0;
  for (const auto& name : nodes)
    if (const auto* node = state.registry.find(name))
      units += node->assigned_units - std::min(node->assigned_units, node->facts.units);
  return units;
}

}  // namespace

uint32_t lent_ranks_waited_for(const ClusterState& state, const Task& gang) {
  const auto& spec = gang.spec;
  const auto width = state.tasks.ranks_tried(gang).size();
  const bool of_gpus = spec.gang.engine == Engine::kGpu;
  const uint64_t each = of_gpus ? spec.gang.gpus_per_rank : spec.units;
  if (width <= spec.gang.ranks || each == 0) return 0;
  const auto lent = static_cast<uint32_t>(width - spec.gang.ranks);
  const auto nodes = nodes_of(state, gang);
  const uint64_t idle = idle_ranks(state, gang) * each;
  // What is idle elsewhere is of no use to who may run on one of its nodes only.
  uint64_t anywhere = 0, here = of_gpus ? 0 : backlog_units(state, nodes);
  size_t looked_at = 0;
  for (const auto& [place_s, id] : state.tasks.queue()) {
    if (++looked_at > kMostLookedAt) break;
    if (!waits_for_units(state, id)) continue;
    const auto& wanted = state.tasks.find(id)->spec;
    if (!wanted.node.empty() && !nodes.contains(wanted.node)) continue;
    const uint64_t need = need_of(wanted, of_gpus);
    if (need <= idle + lent * each) (wanted.node.empty() ? anywhere : here) += need;
  }
  const uint64_t missing = anywhere - std::min(anywhere, idle) + here;
  return static_cast<uint32_t>(std::min<uint64_t>(lent, (missing + each - 1) / each));
}

bool others_wait_for_units(const ClusterState& state) {
  const auto is_full = [&](const std::string& name) {
    const auto* node = state.registry.find(name);
    return !node || node->idle_resources().units == 0;
  };
  size_t looked_at = 0;
  for (const auto& [place_s, id] : state.tasks.queue()) {
    if (++looked_at > kMostLookedAt) return true;
    if (!waits_for_units(state, id)) continue;
    const auto& bound_to = state.tasks.find(id)->spec.node;
    if (bound_to.empty() || !is_full(bound_to)) return true;
  }
  return false;
}

}  // namespace tierpilot
