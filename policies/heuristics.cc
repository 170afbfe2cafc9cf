#include "policies/heuristics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

#include "base/bytes.h"

namespace tierpilot {
namespace {

double load_of(const NodeState& node) {
  return static_cast<double>(std::max(node.assigned, node.running)) /
         std::max<uint32_t>(node.units, 1);
}

std::vector<size_t> candidates_of(const View& view) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < view.nodes.size(); ++i)
    if (view.nodes[i].candidate) indices.push_back(i);
  return indices;
}

Decision undecided(const View& view) {
  Decision decision;
  decision.q.resize(view.nodes.size());
  decision.reason = "no candidate node";
  return decision;
}

// Candidates whose rank is not below any other's. Ranks compare lexicographically.
template <class Rank>
std::vector<size_t> best_of(const View& view, Rank rank) {
  std::vector<size_t> best;
  for (size_t i : candidates_of(view)) {
    if (!best.empty() && rank(view.nodes[i]) > rank(view.nodes[best.front()])) best.clear();
    if (best.empty() || rank(view.nodes[i]) == rank(view.nodes[best.front()])) best.push_back(i);
  }
  return best;
}

class SeededPolicy : public Policy {
 public:
  explicit SeededPolicy(uint64_t seed) : generator_(seed) {}

 protected:
  size_t any_of(const std::vector<size_t>& indices) {
    return indices[std::uniform_int_distribution<size_t>(0, indices.size() - 1)(generator_)];
  }

 private:
  std::mt19937_64 generator_;
};

class RandomPolicy final : public SeededPolicy {
 public:
  using SeededPolicy::SeededPolicy;
  Decision decide(const View& view, const Observation&) override {
    Decision decision = undecided(view);
    const auto candidates = candidates_of(view);
    if (candidates.empty()) return decision;
    decision.node = any_of(candidates);
    decision.reason = fmt::format("any of {} candidates", candidates.size());
    return decision;
  }
};

class RoundRobinPolicy final : public Policy {
 public:
  Decision decide(const View& view, const Observation&) override {
    Decision decision = undecided(view);
    // The candidate with the next higher slot, else the lowest: nodes may come and go.
    const auto after = [&](size_t i) { return view.nodes[i].slot - (last_slot_ + 1); };
    for (size_t i : candidates_of(view))
      if (decision.node == kNoNode || after(i) < after(decision.node)) decision.node = i;
    if (decision.node == kNoNode) return decision;
    last_slot_ = view.nodes[decision.node].slot;
    decision.reason = fmt::format("slot {} is next in turn", last_slot_);
    return decision;
  }

 private:
  uint32_t last_slot_ = UINT32_MAX;
};

class LeastLoadedPolicy final : public SeededPolicy {
 public:
  using SeededPolicy::SeededPolicy;
  Decision decide(const View& view, const Observation&) override {
    Decision decision = undecided(view);
    const auto best = best_of(view, [](const NodeState& node) { return -load_of(node); });
    if (best.empty()) return decision;
    decision.node = any_of(best);
    const NodeState& node = view.nodes[decision.node];
    decision.reason = fmt::format("least load: {} of {} units assigned", node.assigned, node.units);
    return decision;
  }
};

class LocalityGreedyPolicy final : public SeededPolicy {
 public:
  using SeededPolicy::SeededPolicy;
  Decision decide(const View& view, const Observation&) override {
    Decision decision = undecided(view);
    const auto best = best_of(view, [](const NodeState& node) {
      return std::array{static_cast<double>(node.held_fast_bytes),
                        static_cast<double>(node.held_slow_bytes), -load_of(node)};
    });
    if (best.empty()) return decision;
    decision.node = any_of(best);
    const NodeState& node = view.nodes[decision.node];
    decision.reason = fmt::format(
        "holds most of the data: {} fast and {} slow of {}", format_bytes(node.held_fast_bytes),
        format_bytes(node.held_slow_bytes), format_bytes(view.task.data_bytes));
    return decision;
  }
};

Decision locality_load_decision(const View& view, size_t node) {
  Decision decision = undecided(view);
  for (size_t i : candidates_of(view))
    decision.q[i] = locality_load_score(view.task, view.nodes[i]);
  decision.node = node;
  decision.reason = fmt::format("best locality less load: score {:.3f}", *decision.q[node]);
  return decision;
}

std::vector<size_t> best_by_locality_load(const View& view) {
  return best_of(view, [&](const NodeState& node) { return locality_load_score(view.task, node); });
}

class LocalityLoadPolicy final : public SeededPolicy {
 public:
  using SeededPolicy::SeededPolicy;
  Decision decide(const View& view, const Observation&) override {
    const auto best = best_by_locality_load(view);
    return best.empty() ? undecided(view) : locality_load_decision(view, any_of(best));
  }
};

}  // namespace

double locality_load_score(const TaskFeatures& task, const NodeState& node) {
  double at_hand = 0;
  if (task.data_bytes > 0) {
    const auto data = static_cast<double>(task.data_bytes);
    const double fast = std::min(static_cast<double>(node.held_fast_bytes) / data, 1.0);
    at_hand = fast + 0.5 * std::min(static_cast<double>(node.held_slow_bytes) / data, 1.0 - fast);
  }
  const double units = std::max<uint32_t>(node.units, 1);
  return at_hand - 0.5 * (load_of(node) + task.units / units);
}

Decision fallback_decide(const View& view) {
  const auto best = best_by_locality_load(view);
  return best.empty() ? undecided(view) : locality_load_decision(view, best.front());
}

std::unique_ptr<Policy> make_random_policy(uint64_t seed) {
  return std::make_unique<RandomPolicy>(seed);
}
std::unique_ptr<Policy> make_round_robin_policy() {
  return std::make_unique<RoundRobinPolicy>();
}
std::unique_ptr<Policy> make_least_loaded_policy(uint64_t seed) {
  return std::make_unique<LeastLoadedPolicy>(seed);
}
std::unique_ptr<Policy> make_locality_greedy_policy(uint64_t seed) {
  return std::make_unique<LocalityGreedyPolicy>(seed);
}
std::unique_ptr<Policy> make_locality_load_policy(uint64_t seed) {
  return std::make_unique<LocalityLoadPolicy>(seed);
}

}  // namespace tierpilot
