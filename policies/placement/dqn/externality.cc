#include "policies/placement/dqn/externality.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

constexpr size_t kServe = 3;
static_assert(kExternalityTerms[kServe].name == "serve");
constexpr size_t kHeld = 26;
static_assert(kExternalityTerms[kHeld].name == "held");
constexpr double kFullest = 0.95;  // of a load: beyond, 1 / (1 - rho) says nothing any more

double odds(double share) {
  const double bounded = std::min(share, kFullest);
  return bounded / (1 - bounded);
}

double fast_share(const TaskFeatures& task, const NodeState& node) {
  if (task.data_bytes == 0) return 0;
  return static_cast<double>(std::min(node.held_fast_bytes, task.data_bytes)) /
         static_cast<double>(task.data_bytes);
}

}  // namespace

ExternalityWeights delay_finish_externality() {
  ExternalityWeights weights{};
  weights[kServe] = 1;
  weights[kHeld] = 0.1;
  return weights;
}

Externality::Externality(const View& view, const NodeRates& typical, FeatureMask mask)
    : view_(view), typical_(typical), mask_(mask), load_(cluster_load(view)), q_(odds(load_)) {
  for (const NodeState& node : view.nodes) {
    fast_copies_ += fast_share(view.task, node);
    fetching_ += node.assigned_fetch_bytes > 0;
    backlog_s_ += static_cast<double>(node.assigned_fetch_bytes) /
                  or_typical(node.rates.fetch_bytes_per_s, typical.fetch_bytes_per_s);
  }
  const auto count = static_cast<double>(std::max<size_t>(view.nodes.size(), 1));
  fetching_ /= count;
  backlog_s_ /= count;
  v_ = odds(fetching_);
}

double Externality::cost_s(const NodeState& node, const FinishEstimate& estimate,
                           const ExternalityWeights& weights) const {
  const TaskFeatures& task = view_.task;
  const auto data = static_cast<double>(task.data_bytes);
  const double fast = fast_share(task, node) * data;
  const double slow = std::min(static_cast<double>(node.held_slow_bytes), data - fast);
  const double missing = data - fast - slow;
  const double evicted = std::max(data - fast - static_cast<double>(node.free_fast_bytes), 0.0);
  const double fetch_rate = or_typical(node.rates.fetch_bytes_per_s, typical_.fetch_bytes_per_s);
  const double promote_rate =
      or_typical(node.rates.promote_bytes_per_s, typical_.promote_bytes_per_s);
  const double fetch_s = missing / fetch_rate;
  const double transfer_s = estimate.serve_s - estimate.evict_s;
  const double back_s = evicted / promote_rate;
  const double speed = or_typical(node.rates.operations_per_s, typical_.operations_per_s) /
                       typical_.operations_per_s;
  const double held = node.candidate ? 0 : 1;
  const double node_load = static_cast<double>(std::max(node.assigned, node.running)) /
                           std::max<uint32_t>(node.units, 1);
  const double budget = static_cast<double>(std::max<uint64_t>(node.fast_budget_bytes, 1));
  constexpr double kMostCopies = 4;

  const std::array<double, kExternalityCount> terms{
      q_ * estimate.wait_s,
      q_ * (estimate.run_s + estimate.serve_s),
      estimate.wait_s,
      estimate.serve_s,
      estimate.evict_s,
      fetch_s,
      q_ * estimate.evict_s,
      q_ * transfer_s,
      load_ * (speed - 1) * estimate.run_s,
      estimate.run_s * node_load,
      q_ * estimate.run_s,
      std::min(estimate.wait_s, estimate.serve_s),
      fast_copies_ < 0.5 ? missing / typical_.promote_bytes_per_s : 0,
      fetch_s * std::min(fast_copies_, kMostCopies) / kMostCopies,
      q_ * fetch_s,
      task.writes ? (fast_copies_ - fast_share(task, node)) * data / promote_rate : 0,
      data / budget * estimate.serve_s,
      static_cast<double>(node.assigned_fetch_bytes) / fetch_rate,
      back_s * std::max(0.0, 1 - fast_copies_),
      std::sqrt(q_) * estimate.wait_s,
      v_ * fetch_s,
      v_ * transfer_s,
      v_ * estimate.evict_s,
      fetching_ * fetch_s,
      backlog_s_ > 0 ? backlog_s_ / (backlog_s_ + estimate.run_s) * fetch_s : 0,
      v_ * back_s,
      held * estimate.finish_s(),
      held * estimate.wait_s,
      held * estimate.run_s,
      held * q_ * estimate.run_s,
  };
  double cost_s = 0;
  for (size_t i = 0; i < kExternalityCount; ++i)
    if ((kExternalityTerms[i].needs & ~mask_) == 0) cost_s += weights[i] * terms[i];
  return std::isfinite(cost_s) ? cost_s : 0;
}

}  // namespace tierpilot
