#include "policies/sim/queue/gang_room.h"

#include <algorithm>

#include "policies/gang/placement/rank_slots.h"

namespace tierpilot::sim {
namespace {

constexpr double kSecondsOfHour = 3600;

double per_h(const FailureRate& failures) {
  return failures.mean_between_s > 0 ? kSecondsOfHour / failures.mean_between_s : 0;
}

}  // namespace

bool GangRoom::could_ever_hold(const TaskShape& rank, uint32_t ranks) const {
  uint64_t room = 0;
  for (uint32_t node = 0; node < nodes_.size() && room < ranks; ++node)
    room += nodes_.ranks_ever(node, rank);
  return room >= ranks;
}

bool GangRoom::could_hold(const TaskShape& rank, uint32_t ranks) const {
  uint64_t room = 0;
  for (const uint32_t node : nodes_.up()) room += nodes_.ranks_ever(node, rank);
  return room >= ranks;
}

// A unit of this state is a place for one rank. Its failure rate is the true one, which a cluster
// that has run for long has learned.
gang::PlacementState GangRoom::state_of(const TaskShape& rank) const {
  gang::PlacementState state;
  state.units_per_node = 1;
  state.costs = {.checkpoint_h = cluster_.checkpoints.cost_s / kSecondsOfHour,
                 .restart_h = cluster_.checkpoints.restart_s / kSecondsOfHour};
  const uint32_t gpus = Gpus::whole_gpus(rank.gpu_milli);
  for (const uint32_t node : nodes_.up()) {
    const uint32_t places = nodes_.ranks_ever(node, rank);
    const uint32_t free = std::min(nodes_.ranks_now(node, rank), places);
    const NodeGroup& group = nodes_.group(node);
    state.units_per_node = std::max(state.units_per_node, places);
    for (uint32_t i = 0; i < places; ++i) {
      state.node.push_back(node);
      state.free.push_back(i < free);
      state.per_h.push_back(gpus * per_h(group.gpu_failures) + per_h(group.node_failures) / places);
    }
  }
  return state;
}

std::vector<uint32_t> GangRoom::place(int64_t now_ns, const TaskShape& rank, uint32_t ranks,
                                      double work_s) {
  for (const auto& [shape, too_many] : none_for_)
    if (shape == rank && ranks >= too_many) return {};
  uint64_t room = 0;
  for (const uint32_t node : nodes_.up()) room += nodes_.ranks_now(node, rank);
  if (room < ranks) {
    none_for_.emplace_back(rank, ranks);
    return {};
  }
  auto state = state_of(rank);
  state.now_h = static_cast<double>(now_ns) * 1e-9 / kSecondsOfHour;
  const auto chosen = gang::place_ranks(state, {.work_h = work_s / kSecondsOfHour},
                                        {.ranks = ranks, .units_per_rank = 1}, placer_);
  std::vector<uint32_t> nodes;
  if (!chosen) return nodes;
  for (const auto& units : chosen->units) nodes.push_back(state.node_of(units.front()));
  return nodes;
}

}  // namespace tierpilot::sim
