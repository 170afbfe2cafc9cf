#include "policies/placement/fallback.h"

#include <gtest/gtest.h>

#include "tests/unit/policies/view_builder.h"

namespace tierpilot {
namespace {

using testing_views::node;
using testing_views::view_of;

TEST(Fallback, TakesTheNodeThatFinishesFirst) {
  // Full, with the data; idle, without; idle, and slower.
  View view = view_of({node(0, 8, 100), node(1), node(2)});
  view.nodes[1].rates.operations_per_s = 4e9;
  view.nodes[2].rates.operations_per_s = 1e9;
  const Decision decision = fallback_decide(view);
  EXPECT_EQ(decision.node, 1u);
  ASSERT_TRUE(decision.q[0] && decision.q[1] && decision.q[2]);
  EXPECT_GT(*decision.q[1], *decision.q[0]);
  EXPECT_GT(*decision.q[1], *decision.q[2]);
  EXPECT_LT(*decision.q[1], 0) << "seconds, negated";
  EXPECT_NE(decision.reason.find("finish"), std::string::npos);
}

TEST(Fallback, AmongEqualsTakesTheLeastLoadedAndThenTheFirst) {
  EXPECT_EQ(fallback_decide(view_of({node(0, 1), node(1), node(2)})).node, 1u);
}

TEST(Fallback, TakesOnlyCandidates) {
  View view = view_of({node(0), node(1, 1, 100), node(2, 1)});
  view.nodes[0].candidate = view.nodes[1].candidate = false;
  const Decision decision = fallback_decide(view);
  EXPECT_EQ(decision.node, 2u);
  EXPECT_FALSE(decision.q[0] || decision.q[1]);
  view.nodes[2].candidate = false;
  for (const View& none : {view, View{}}) {
    EXPECT_EQ(fallback_decide(none).node, kNoNode);
    EXPECT_EQ(fallback_decide(none).reason, "no candidate node");
  }
}

// Node 0 is full and has the data; to bring it to node 1 takes `transfer_s`.
View full_holder_and_idle(double transfer_s) {
  View view = view_of({node(0, 8, 100), node(1)});
  view.may_hold = true;
  view.nodes[0].candidate = false;
  view.nodes[0].full = true;
  view.nodes[0].assigned_operations = 8 * view.task.operations;
  const auto data = static_cast<double>(view.task.data_bytes);
  for (NodeState& each : view.nodes) {
    each.rates.operations_per_s = view.task.operations * 10;  // runs for 0.1 s
    each.rates.fetch_bytes_per_s = data / transfer_s;
  }
  return view;
}

TEST(Fallback, WaitsForTheDataWhereToBringItCostsMore) {
  const Decision waits = fallback_decide(full_holder_and_idle(60));
  EXPECT_EQ(waits.node, kNoNode);
  EXPECT_EQ(waits.held_for, 0u);
  ASSERT_TRUE(waits.q[0] && waits.q[1]);
  EXPECT_GT(*waits.q[0], *waits.q[1]);
  const Decision places = fallback_decide(full_holder_and_idle(0.01));
  EXPECT_EQ(places.node, 1u);
  EXPECT_EQ(places.held_for, kNoNode);
  View forbidden = full_holder_and_idle(60);
  forbidden.may_hold = false;
  EXPECT_EQ(fallback_decide(forbidden).node, 1u);
}

TEST(Fallback, TellsWhoseFaultItIs) {
  const auto decision =
      fallback_decide(view_of({node(0)}), DecisionFault::kUnfamiliar, "never seen");
  EXPECT_EQ(decision.node, 0u);
  EXPECT_EQ(decision.fault, DecisionFault::kUnfamiliar);
  EXPECT_EQ(decision.reason.find("never seen: "), 0u);
}

}  // namespace
}  // namespace tierpilot
