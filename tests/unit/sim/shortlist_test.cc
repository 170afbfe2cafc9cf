// What a decision in a large cluster is shown, against the rules written down once more, without
// any of the bookkeeping: they are followed on the view of all nodes.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <random>
#include <set>

#include "policies/scheduling/speed_class.h"
#include "policies/sim/generator.h"
#include "policies/sim/node_set.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kConsidered = 12;

std::vector<NodeState> shortlist_of(const View& all) {
  if (all.nodes.size() <= kConsidered) return all.nodes;
  std::vector<NodeState> able, listed;
  for (const NodeState& node : all.nodes)
    if (node.candidate) able.push_back(node);
  const auto held = [](const NodeState& node) {
    return static_cast<double>(node.held_fast_bytes) +
           0.5 * static_cast<double>(node.held_slow_bytes);
  };
  const auto load = [](const NodeState& node) {
    return static_cast<double>(node.assigned) / node.units;
  };
  const auto take = [&](size_t most, auto fits, auto rank) {
    std::sort(able.begin(), able.end(),
              [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    for (auto node = able.begin(); node != able.end() && listed.size() < most;)
      if (fits(*node))
        listed.push_back(*node), node = able.erase(node);
      else
        ++node;
  };
  take(
      kConsidered / 2, [&](const auto& node) { return held(node) > 0; },
      [&](const auto& node) { return std::tuple(-held(node), load(node), node.slot); });
  const auto by_load = [&](const auto& node) { return std::tuple(load(node), node.slot); };
  const auto speed = [](const auto& node) { return speed_class(node.rates.operations_per_s); };
  std::set<int, std::greater<>> classes;
  for (const NodeState& node : all.nodes) classes.insert(speed(node));
  size_t left = classes.size();
  for (const int each : classes) {
    const double share = std::ceil(static_cast<double>(kConsidered - listed.size()) / left--);
    take(
        listed.size() + static_cast<size_t>(share),
        [&](const auto& node) { return speed(node) == each; }, by_load);
  }
  for (const int each : classes)
    take(
        kConsidered, [&](const auto& node) { return speed(node) == each; }, by_load);
  std::sort(listed.begin(), listed.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return listed;
}

auto told(const NodeState& node) {
  return std::tuple(node.slot, node.candidate, node.running, node.assigned, node.free_fast_bytes,
                    node.held_fast_bytes, node.held_slow_bytes, node.assigned_operations,
                    node.assigned_fetch_bytes, node.free_gpu_milli, node.rates.operations_per_s,
                    node.rates.fetch_bytes_per_s);
}

// Mostly data, else some candidate in turn.
struct Chooser final : Policy {
  bool needs_observation() const override { return false; }
  Decision decide(const View& view, const Observation&) override {
    views.push_back(view);
    Decision decision;
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      const size_t at = (i + views.size()) % view.nodes.size();
      if (!view.nodes[at].candidate) continue;
      if (decision.node == kNoNode || view.nodes[at].held_fast_bytes > 0) decision.node = at;
    }
    slots.push_back(view.nodes[decision.node].slot);
    return decision;
  }
  std::vector<View> views;
  std::vector<uint32_t> slots;
};

// Decides as was decided before, and says where a view should have been another one.
struct Repeater final : Policy {
  explicit Repeater(const Chooser& before) : before(before) {}
  bool needs_observation() const override { return false; }
  Decision decide(const View& view, const Observation&) override {
    if (next >= before.slots.size()) return {};
    const auto expected = shortlist_of(view);
    const auto& nodes = before.views[next].nodes;
    const bool same = std::equal(expected.begin(), expected.end(), nodes.begin(), nodes.end(),
                                 [](const auto& a, const auto& b) { return told(a) == told(b); });
    differences += !same;
    Decision decision;
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].slot == before.slots[next]) decision.node = i;
    ++next;
    return decision;
  }
  const Chooser& before;
  size_t next = 0;
  size_t differences = 0;
};

TEST(Shortlist, IsWhatTheRulesSayOfAllNodes) {
  auto cluster = plain_cluster(40, 2);
  cluster.groups.push_back(plain_nodes(20, 3));
  cluster.groups[1].gpus = 2;
  cluster.groups[1].operations_per_s *= 3;
  cluster.groups[0].node_failures =
      cluster.groups[1].node_failures = {.mean_between_s = 100, .mean_repair_s = 20};
  cluster.groups[1].gpu_failures = {.mean_between_s = 100, .mean_repair_s = 20};
  cluster.coordinator.max_attempts = 100;
  GeneratorOptions options;
  options.tasks = 4000;
  options.offered_load = 0.9;
  options.datasets = 40;
  options.min_dataset_bytes = kMB;
  options.max_dataset_bytes = 30 * kMB;
  options.units = {1, 2, 3};
  options.gpu_share = 0.3;
  options.gpu_milli = {100, 200, 250, 300, 400, 500, 1000, 1500, 2000};  // more than are kept
  options.min_operations = 1e9;
  options.max_operations = 1e10;
  const Workload workload = generate(options, cluster, 1);

  cluster.coordinator.considered_nodes = kConsidered;
  Chooser chooser;
  const auto in_part = run(cluster, workload, chooser);
  cluster.coordinator.considered_nodes = 1000;
  Repeater repeater(chooser);
  const auto in_full = run(cluster, workload, repeater);
  EXPECT_EQ(repeater.differences, 0u) << "of " << chooser.views.size();
  EXPECT_GT(in_part.result.node_failures, 20u);
  EXPECT_EQ(in_part.log.order, in_full.log.order);
  EXPECT_EQ(in_part.result.responses_s, in_full.result.responses_s);
}

TEST(NodeSet, AddsTheLowestOfTwoSets) {
  NodeSet a(200), b(200), sum(200);
  for (uint32_t node = 0; node < 200; node += 2) a.set(node, true);
  for (uint32_t node = 0; node < 200; node += 3) b.set(node, true);
  sum.set(199, true);
  sum.add_common(a, b, 15);
  std::vector<uint32_t> nodes;
  sum.for_each([&](uint32_t node) { nodes.push_back(node); });
  ASSERT_EQ(nodes.size(), 15u);
  for (uint32_t i = 0; i < 14; ++i) EXPECT_EQ(nodes[i], 6 * i);
  EXPECT_EQ(nodes[14], 199u);
  sum.set(199, true);
  EXPECT_EQ(sum.size(), 15u);
  sum.clear();
  EXPECT_EQ(sum.size(), 0u);
  EXPECT_FALSE(sum.contains(6));
}

// Of a cluster so large that whole stretches of it are empty.
TEST(NodeSet, AgreesWithAnOrderedSet) {
  constexpr uint32_t kNodes = 9000;
  std::mt19937 random(7);
  std::array<NodeSet, 2> sets{NodeSet(kNodes), NodeSet(kNodes)};
  std::array<std::set<uint32_t>, 2> expected;
  const auto nodes_of = [](const NodeSet& set) {
    std::vector<uint32_t> nodes;
    set.for_each([&](uint32_t node) { nodes.push_back(node); });
    return nodes;
  };
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 300; ++i) {
      const size_t which = random() % 2;
      const uint32_t node = random() % (round % 2 ? kNodes : 200);
      const bool in = random() % 8 < (round < 100 ? 5 : 1);
      sets[which].set(node, in);
      in ? void(expected[which].insert(node)) : void(expected[which].erase(node));
    }
    for (size_t which : {0, 1})
      ASSERT_EQ(nodes_of(sets[which]),
                std::vector<uint32_t>(expected[which].begin(), expected[which].end()));
    NodeSet common(kNodes);
    common.add_common(sets[0], sets[1], 40);
    std::vector<uint32_t> both;
    std::set_intersection(expected[0].begin(), expected[0].end(), expected[1].begin(),
                          expected[1].end(), std::back_inserter(both));
    both.resize(std::min<size_t>(both.size(), 40));
    ASSERT_EQ(nodes_of(common), both);
  }
}

}  // namespace
}  // namespace tierpilot::sim
