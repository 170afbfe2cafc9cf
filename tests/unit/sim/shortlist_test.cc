// What a decision in a large cluster is shown, against the rules without any of the bookkeeping:
// they are followed on the view of all nodes. The rules: tests/unit/policies/shortlist_test.cc.
#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>

#include "policies/scheduling/shortlist.h"
#include "policies/sim/generator.h"
#include "policies/sim/view/node_set.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kConsidered = 12;

// The view of all nodes as policies/scheduling/shortlist.h wants it.
class PlainCluster {
 public:
  using Node = const NodeState*;
  explicit PlainCluster(const View& all) : all_(all) {
    for (const NodeState& node : all.nodes) by_speed_[speed_of(&node)].push_back(&node);
    for (const auto& [speed, alike] : by_speed_) classes_.push_back(speed);
  }

  template <class Visit>
  void for_each_holder(Visit visit) const {
    for (const NodeState& node : all_.nodes)
      if (node.held_fast_bytes + node.held_slow_bytes > 0)
        visit(&node, node.held_fast_bytes, node.held_slow_bytes);
  }
  bool can_take(Node node) const { return node->candidate; }
  bool could_take(Node node) const { return node->candidate || node->full; }
  double load(Node node) const { return assigned_load(node->assigned, node->units); }
  uint32_t slot(Node node) const { return node->slot; }
  size_t chosen() const { return chosen_.size(); }
  void choose(Node node) { chosen_[node->slot] = *node; }
  void choose_full(Node node) { choose(node); }
  std::vector<int>& classes() { return classes_; }
  void choose_least_loaded(int speed, size_t most) {
    auto& alike = by_speed_[speed];
    std::stable_sort(alike.begin(), alike.end(), [&](Node a, Node b) { return load(a) < load(b); });
    for (const Node node : alike)
      if (can_take(node) && chosen() < most) choose(node);
  }
  std::vector<NodeState> list() const {
    std::vector<NodeState> nodes;
    for (const auto& [slot, node] : chosen_) nodes.push_back(node);
    return nodes;
  }

 private:
  static int speed_of(Node node) { return speed_class(node->rates.operations_per_s); }

  const View& all_;
  std::map<int, std::vector<Node>, std::greater<>> by_speed_;
  std::vector<int> classes_;
  std::map<uint32_t, NodeState> chosen_;  // by slot
};

std::vector<NodeState> shortlist_of(const View& all) {
  if (all.nodes.size() <= kConsidered) return all.nodes;
  PlainCluster cluster(all);
  std::vector<DataHolder<const NodeState*>> scratch;
  make_shortlist(cluster, kConsidered, false, scratch);
  return cluster.list();
}

auto told(const NodeState& node) {
  return std::tuple(node.slot, node.candidate, node.running, node.assigned, node.free_fast_bytes,
                    node.held_fast_bytes, node.held_slow_bytes, node.assigned_operations,
                    node.assigned_fetch_bytes, node.free_gpu_milli, node.rates.operations_per_s,
                    node.rates.fetch_bytes_per_s);
}

// Mostly data, else some candidate in turn.
struct Chooser final : Policy {
  Decision decide(const View& view) override {
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
  Decision decide(const View& view) override {
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
