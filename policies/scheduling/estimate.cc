#include "policies/scheduling/estimate.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

constexpr double NodeRates::*kAllRates[] = {
    &NodeRates::operations_per_s, &NodeRates::fast_bytes_per_s, &NodeRates::promote_bytes_per_s,
    &NodeRates::evict_bytes_per_s, &NodeRates::fetch_bytes_per_s};

// Of a task that does not tell: a tenth of a second at the nominal rate.
constexpr double kNominalOperations = 1e8;

bool known(double rate) {
  return rate > 0 && std::isfinite(rate);
}

double wait_operations(const TaskFeatures& task, const NodeState& node, double own_operations) {
  const double units = std::max<uint32_t>(node.units, 1);
  const double taken = std::max(node.assigned, node.running);
  const double excess = taken + task.units - units;
  if (excess <= 0) return 0;
  const double mean =
      known(node.assigned_operations) ? node.assigned_operations / taken : own_operations;
  return (excess * mean + node.held_operations) / units;
}

}  // namespace

double operations_of(const TaskFeatures& task) {
  return known(task.operations) ? task.operations : kNominalOperations;
}

double or_typical(double rate, double typical) {
  return known(rate) ? rate : typical;
}

NodeRates typical_rates(const View& view) {
  NodeRates typical;
  for (const auto rate : kAllRates) {
    double sum = 0;
    size_t count = 0;
    for (const NodeState& node : view.nodes)
      if (known(node.rates.*rate)) {
        sum += node.rates.*rate;
        ++count;
      }
    typical.*rate = count > 0 ? sum / static_cast<double>(count) : kNominalRates.*rate;
  }
  return typical;
}

double cluster_load(const View& view) {
  double assigned = 0;
  double units = 0;
  for (const NodeState& node : view.nodes) {
    assigned += std::max(node.assigned, node.running);
    units += node.units;
  }
  return units > 0 ? std::min(assigned / units, 1.0) : 0;
}

double marginal_cost_s(const FinishEstimate& estimate, double load) {
  const double rho = std::min(load, 0.9);
  const double busy_s = estimate.run_s + estimate.serve_s;
  return estimate.finish_s() + rho / (1 - rho) * (estimate.wait_s + busy_s / 2);
}

double best_finish_s(const View& view) {
  const NodeRates typical = typical_rates(view);
  double best_s = HUGE_VAL;
  for (const NodeState& node : view.nodes)
    if (node.candidate)
      best_s = std::min(best_s, estimate_finish(view.task, node, typical).finish_s());
  return std::isfinite(best_s) ? best_s : 0;
}

FinishEstimate estimate_finish(const TaskFeatures& task, const NodeState& node,
                               const NodeRates& typical) {
  const double operations_per_s = or_typical(node.rates.operations_per_s, typical.operations_per_s);
  FinishEstimate estimate;
  const double operations = operations_of(task);
  estimate.run_s = operations / operations_per_s;
  estimate.wait_s = wait_operations(task, node, operations) / operations_per_s;

  const double data = static_cast<double>(task.data_bytes);
  const double fast = std::min(static_cast<double>(node.held_fast_bytes), data);
  const double slow = std::min(static_cast<double>(node.held_slow_bytes), data - fast);
  const double missing = data - fast - slow;
  const double evicted = std::max(data - fast - static_cast<double>(node.free_fast_bytes), 0.0);
  estimate.evict_s = evicted / or_typical(node.rates.evict_bytes_per_s, typical.evict_bytes_per_s);
  const double promote_bytes_per_s =
      or_typical(node.rates.promote_bytes_per_s, typical.promote_bytes_per_s);
  const double fetch_bytes_per_s =
      or_typical(node.rates.fetch_bytes_per_s, typical.fetch_bytes_per_s);
  estimate.serve_s = estimate.evict_s + slow / promote_bytes_per_s + missing / fetch_bytes_per_s;
  // Behind the transfers of others, unless all of it is there.
  if (slow + missing > 0)
    estimate.serve_s += static_cast<double>(node.assigned_fetch_bytes) /
                        (missing > 0 ? fetch_bytes_per_s : promote_bytes_per_s);
  return estimate;
}

}  // namespace tierpilot
