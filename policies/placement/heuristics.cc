#include "policies/placement/heuristics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <tuple>

#include "base/bytes.h"
#include "base/random.h"
#include "policies/scheduling/delay.h"
#include "policies/scheduling/estimate.h"

namespace tierpilot {
namespace {

// Candidates whose rank is not below any other's: how many; they are the first in `best`, which
// only grows. Ranks compare lexicographically.
template <class Rank>
size_t best_of(const View& view, std::vector<uint32_t>& best, Rank rank) {
  const size_t nodes = view.nodes.size();
  if (best.size() < nodes) best.resize(nodes);
  const NodeState* const states = view.nodes.data();
  uint32_t* const found = best.data();
  size_t count = 0;
  decltype(rank(*states)) top{};
  for (size_t i = 0; i < nodes; ++i) {
    if (!states[i].candidate) continue;
    const auto here = rank(states[i]);
    if (count > 0 && here < top) continue;
    if (here > top) count = 0;
    top = here;
    found[count++] = static_cast<uint32_t>(i);
  }
  return count;
}

Decision undecided(const View& view) {
  Decision decision;
  decision.q.resize(view.nodes.size());
  decision.reason = "no candidate node";
  return decision;
}

class Heuristic : public Policy {
 public:
  Decision decide(const View& view) final {
    Decision decision;
    if (explains()) decision = undecided(view);
    decision.node = choose(view);
    if (decision.node == kNoNode) return decision;
    decision.held_for = hold(view, decision.node);
    if (decision.held_for != kNoNode)
      decision.node = kNoNode;
    else if (explains())
      describe(view, decision);
    return decision;
  }

 protected:
  virtual size_t choose(const View& view) = 0;
  // The full node to wait for in place of `chosen`.
  virtual size_t hold(const View&, size_t /*chosen*/) const { return kNoNode; }
  // Gives a decision its reason, and its scores where there are any.
  virtual void describe(const View& view, Decision& decision) const = 0;
};

class SeededHeuristic : public Heuristic {
 public:
  explicit SeededHeuristic(uint64_t seed) : generator_(derived_seed(seed, "policy")) {}

 protected:
  template <class Rank>
  size_t any_best(const View& view, Rank rank) {
    equals_ = best_of(view, best_, rank);
    if (equals_ == 0) return kNoNode;
    return best_[std::uniform_int_distribution<size_t>(0, equals_ - 1)(generator_)];
  }
  size_t equals() const { return equals_; }

 private:
  std::mt19937_64 generator_;
  std::vector<uint32_t> best_;
  size_t equals_ = 0;
};

class RandomPolicy final : public SeededHeuristic {
 public:
  using SeededHeuristic::SeededHeuristic;

 protected:
  size_t choose(const View& view) override {
    return any_best(view, [](const NodeState&) { return 0; });
  }
  void describe(const View&, Decision& decision) const override {
    decision.reason = fmt::format("any of {} candidates", equals());
  }
};

class RoundRobinPolicy final : public Heuristic {
 protected:
  size_t choose(const View& view) override {
    // The candidate with the next higher slot, else the lowest: nodes may come and go.
    const auto after = [&](size_t i) { return view.nodes[i].slot - (last_slot_ + 1); };
    size_t next = kNoNode;
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].candidate && (next == kNoNode || after(i) < after(next))) next = i;
    if (next != kNoNode) last_slot_ = view.nodes[next].slot;
    return next;
  }
  void describe(const View&, Decision& decision) const override {
    decision.reason = fmt::format("slot {} is next in turn", last_slot_);
  }

 private:
  uint32_t last_slot_ = UINT32_MAX;
};

class LeastLoadedPolicy final : public SeededHeuristic {
 public:
  using SeededHeuristic::SeededHeuristic;

 protected:
  size_t choose(const View& view) override {
    return any_best(view, [](const NodeState& node) { return -load_of(node); });
  }
  void describe(const View& view, Decision& decision) const override {
    const NodeState& node = view.nodes[decision.node];
    decision.reason = fmt::format("least load: {} of {} units assigned", node.assigned, node.units);
  }
};

class LocalityGreedyPolicy : public SeededHeuristic {
 public:
  using SeededHeuristic::SeededHeuristic;

 protected:
  size_t choose(const View& view) override {
    return any_best(view, [](const NodeState& node) {
      return std::array{static_cast<double>(node.held_fast_bytes),
                        static_cast<double>(node.held_slow_bytes), -load_of(node)};
    });
  }
  void describe(const View& view, Decision& decision) const override {
    const NodeState& node = view.nodes[decision.node];
    decision.reason = fmt::format(
        "holds most of the data: {} fast and {} slow of {}", format_bytes(node.held_fast_bytes),
        format_bytes(node.held_slow_bytes), format_bytes(view.task.data_bytes));
  }
};

class DelayLocalityPolicy final : public LocalityGreedyPolicy {
 public:
  using LocalityGreedyPolicy::LocalityGreedyPolicy;
  bool holds() const override { return true; }

 protected:
  size_t hold(const View& view, size_t chosen) const override {
    using Cost = std::tuple<uint64_t, uint64_t, double>;
    const uint64_t data = view.task.data_bytes;
    const auto missing = [data](const NodeState& node) {
      return std::pair(data - std::min(data, node.held_fast_bytes),
                       data - std::min(data, node.held_slow_bytes));
    };
    const auto [fast, slow] = missing(view.nodes[chosen]);
    return full_node_below(view, Cost{fast, slow, -HUGE_VAL}, [&](const NodeState& node) {
      const auto [not_fast, not_slow] = missing(node);
      return Cost{not_fast, not_slow,
                  static_cast<double>(node.assigned + node.held_units) / std::max(node.units, 1U)};
    });
  }
};

// Half the load after taking the task, in tasks per unit.
double load_penalty(const TaskFeatures& task, const NodeState& node) {
  const double units = std::max<uint32_t>(node.units, 1);
  return 0.5 * (load_of(node) + task.units / units);
}

// Share of the data at hand; slow memory counts half.
double at_hand(const TaskFeatures& task, const NodeState& node) {
  double at_hand = 0;
  if (task.data_bytes > 0 && (node.held_fast_bytes | node.held_slow_bytes) != 0) {
    const auto data = static_cast<double>(task.data_bytes);
    const double fast = std::min(static_cast<double>(node.held_fast_bytes) / data, 1.0);
    at_hand = fast + 0.5 * std::min(static_cast<double>(node.held_slow_bytes) / data, 1.0 - fast);
  }
  return at_hand;
}

double locality_load_score(const TaskFeatures& task, const NodeState& node) {
  return at_hand(task, node) - load_penalty(task, node);
}

class LocalityLoadPolicy final : public SeededHeuristic {
 public:
  using SeededHeuristic::SeededHeuristic;

 protected:
  size_t choose(const View& view) override {
    // Many nodes are loaded alike; dividing anew for each would be most of a choice's time.
    uint32_t assigned = 0, running = 0, units = 0;
    double penalty = load_penalty(view.task, {});
    return any_best(view, [&, task = view.task](const NodeState& node) {
      if (node.assigned != assigned || node.running != running || node.units != units) {
        assigned = node.assigned, running = node.running, units = node.units;
        penalty = load_penalty(task, node);
      }
      return at_hand(task, node) - penalty;
    });
  }
  void describe(const View& view, Decision& decision) const override {
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].candidate) decision.q[i] = locality_load_score(view.task, view.nodes[i]);
    decision.reason =
        fmt::format("best locality less load: score {:.3f}", *decision.q[decision.node]);
  }
};

}  // namespace

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
std::unique_ptr<Policy> make_delay_locality_policy(uint64_t seed) {
  return std::make_unique<DelayLocalityPolicy>(seed);
}
std::unique_ptr<Policy> make_locality_load_policy(uint64_t seed) {
  return std::make_unique<LocalityLoadPolicy>(seed);
}

}  // namespace tierpilot
