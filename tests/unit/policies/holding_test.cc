#include "policies/placement/dqn/holding.h"

#include <gtest/gtest.h>

#include "view_builder.h"

namespace tierpilot {
namespace {

using testing_views::node;
using testing_views::view_of;

constexpr uint64_t kData = 32 << 20;

// A full node has the data and works for `work_s`; an idle one would have to fetch it for 1 s.
View choice(double work_s) {
  View view = view_of({node(0), node(1, 4, kData)}, kData);
  view.may_hold = true;
  view.task.operations = 1e8;
  for (NodeState& each : view.nodes)
    each.rates = {.operations_per_s = 1e9, .fetch_bytes_per_s = static_cast<double>(kData)};
  NodeState& full = view.nodes[1];
  full.candidate = false;
  full.full = true;
  full.assigned_operations = work_s * 1e9;
  return view;
}

size_t held_for(const View& view, const ExternalityWeights& others = delay_finish_externality()) {
  return worth_waiting_for(view, kAllFeatures, others, 0);
}

TEST(Holding, AShortWaitForTheDataIsWorthIt) {
  EXPECT_EQ(held_for(choice(0.1)), 1u);
  EXPECT_EQ(held_for(choice(20)), kNoNode);
}

TEST(Holding, ThoseThatWaitAlreadyMakeItLonger) {
  View view = choice(0.1);
  view.nodes[1].held_units = 20;
  view.nodes[1].held_operations = 20e9;
  EXPECT_EQ(held_for(view), kNoNode);
}

TEST(Holding, NothingIsHeldThatMayNotBe) {
  View view = choice(0.1);
  view.may_hold = false;
  EXPECT_EQ(held_for(view), kNoNode) << "it may not";
  view = choice(0.1);
  view.nodes[1].full = false;
  EXPECT_EQ(held_for(view), kNoNode) << "the node could never take it";
  view = choice(0.1);
  view.task.data_bytes = 0;
  EXPECT_EQ(held_for(view), kNoNode) << "there is nothing to fetch";
  view = choice(0.1);
  view.task.gpu_milli = 500;
  EXPECT_EQ(held_for(view), kNoNode) << "how long its GPUs are taken is not known";
  EXPECT_EQ(held_for(choice(0.1), kNoExternality), kNoNode) << "nothing is known of others";
}

TEST(Holding, ALearnedMarginDecides) {
  ExternalityWeights patient = delay_finish_externality(), impatient = patient;
  for (size_t i = 0; i < kExternalityCount; ++i)
    if (kExternalityTerms[i].name == "held") patient[i] = -0.5, impatient[i] = 500;
  EXPECT_EQ(held_for(choice(0.1), patient), 1u);
  EXPECT_EQ(held_for(choice(0.1), impatient), kNoNode);
}

}  // namespace
}  // namespace tierpilot
