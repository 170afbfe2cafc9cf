#include "policies/placement/dqn/externality.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/policies/view_builder.h"

namespace tierpilot {
namespace {

double cost_s(const View& view, size_t node, const ExternalityWeights& weights,
              FeatureMask mask = kAllFeatures) {
  const NodeRates typical = typical_rates(view);
  return Externality(view, typical, mask)
      .cost_s(view.nodes[node], estimate_finish(view.task, view.nodes[node], typical), weights);
}

View busy_view() {
  View view;
  view.task = {.operations = 1e9, .data_bytes = 1 << 28, .writes = true, .units = 1};
  for (uint32_t i = 0; i < 4; ++i) {
    NodeState node{.slot = i, .candidate = true, .running = 1, .assigned = 1 + i, .units = 2};
    node.fast_budget_bytes = 1 << 30;
    node.free_fast_bytes = (i % 2) << 28;
    node.held_fast_bytes = i == 3 ? 1 << 28 : 0;
    node.held_slow_bytes = i == 1 ? 1 << 28 : 0;
    node.assigned_operations = 1e9 * (1 + i);
    node.assigned_fetch_bytes = i << 26;
    node.rates = {1e9 * (1 + i), 8e9, 1e9, 0.5e9, 0.8e9};
    view.nodes.push_back(node);
  }
  return view;
}

// With those weights it is what the heuristic delay-finish adds to the finish.
TEST(Externality, HoldsTheFormulaOfDelayFinish) {
  const View view = busy_view();
  const NodeRates typical = typical_rates(view);
  for (size_t i = 0; i < view.nodes.size(); ++i) {
    const auto estimate = estimate_finish(view.task, view.nodes[i], typical);
    const double expected = shared_finish_s(estimate) - estimate.finish_s();
    EXPECT_NEAR(cost_s(view, i, delay_finish_externality()), expected, 1e-9) << i;
  }
}

TEST(Externality, EachTermCountsOnlyWithTheGroupsItNeeds) {
  View view = busy_view();
  view.nodes[2].candidate = false;
  view.nodes[2].full = true;
  for (size_t term = 0; term < kExternalityCount; ++term) {
    ExternalityWeights weights{};
    weights[term] = 1;
    bool counts = false;
    for (size_t node = 0; node < view.nodes.size(); ++node) {
      counts = counts || cost_s(view, node, weights) != 0;
      for (unsigned group = 0; group < kFeatureGroups; ++group)
        if (kExternalityTerms[term].needs >> group & 1)
          EXPECT_EQ(cost_s(view, node, weights, without(static_cast<FeatureGroup>(group))), 0);
    }
    EXPECT_TRUE(counts || kExternalityTerms[term].name == "evicted for a first copy" ||
                kExternalityTerms[term].name == "promotion of nobody's")
        << kExternalityTerms[term].name;
  }
}

TEST(Externality, WhatIsHeldCountsForFullNodesAlone) {
  const View view = busy_view();
  for (size_t term = 0; term < kExternalityCount; ++term) {
    if (!kExternalityTerms[term].name.starts_with("held")) continue;
    ExternalityWeights weights{};
    weights[term] = 1;
    for (size_t node = 0; node < view.nodes.size(); ++node)
      EXPECT_EQ(cost_s(view, node, weights), 0);
  }
}

TEST(Externality, IsFiniteWhateverTheNodeSays) {
  View view = busy_view();
  view.task.data_bytes = UINT64_MAX;
  view.task.operations = std::numeric_limits<double>::infinity();
  view.nodes[0].rates = {-1, 1e300, NAN, INFINITY, 0};
  view.nodes[1].assigned = UINT32_MAX;
  view.nodes[2].units = 0;
  ExternalityWeights weights;
  weights.fill(1);
  for (size_t node = 0; node < view.nodes.size(); ++node)
    EXPECT_TRUE(std::isfinite(cost_s(view, node, weights))) << node;
}

}  // namespace
}  // namespace tierpilot
