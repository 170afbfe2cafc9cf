#include "policies/placement/published/observation.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

float log_pages(uint64_t bytes) {
  constexpr double kPageBytes = 4096;
  return static_cast<float>(std::log2(1 + static_cast<double>(bytes) / kPageBytes) / 20);
}

float log_operations(double operations) {
  if (!(operations > 0)) return 0;  // also NaN
  return static_cast<float>(std::log10(1 + std::min(operations, 1e24)) / 12);
}

float utilisation(const NodeState& node) {
  const double units = std::max<uint32_t>(node.units, 1);
  return static_cast<float>(std::log2(1 + std::max(node.assigned, node.running) / units) / 2);
}

float overlap(const TaskFeatures& task, const NodeState& node, double slow_share) {
  if (task.data_bytes == 0) return 0;
  const auto data = static_cast<double>(task.data_bytes);
  const double fast = std::min(static_cast<double>(node.held_fast_bytes) / data, 1.0);
  const double slow = std::min(static_cast<double>(node.held_slow_bytes) / data, 1.0 - fast);
  return static_cast<float>(fast + slow_share * slow);
}

bool alike(const std::vector<NodeState>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](const NodeState& node) {
    return node.units == nodes.front().units &&
           node.fast_budget_bytes == nodes.front().fast_budget_bytes;
  });
}

}  // namespace

Observation observe(const View& view, const FeatureSettings& settings) {
  using Layout = ObservationLayout;
  Observation seen;
  seen.values.assign(Layout::kSize, 0.0F);
  seen.exchangeable = alike(view.nodes);
  for (const NodeState& node : view.nodes) {
    if (node.slot >= settings.slots) continue;
    seen.present.set(node.slot);
    seen.candidates.set(node.slot, node.candidate);
    seen.values[Layout::kUtilisation + node.slot] = utilisation(node);
    seen.values[Layout::kFreeFast + node.slot] = log_pages(node.free_fast_bytes);
    seen.values[Layout::kOverlap + node.slot] = overlap(view.task, node, settings.slow_share);
  }
  seen.values[Layout::kOperations] = log_operations(view.task.operations);
  seen.values[Layout::kDataSize] = log_pages(view.task.data_bytes);
  seen.values[Layout::kWrites] = view.task.writes ? 1.0F : 0.0F;
  return seen;
}

}  // namespace tierpilot
