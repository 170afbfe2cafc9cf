#include "policies/placement/published/observation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/policies/view_builder.h"

namespace tierpilot {
namespace {

using Layout = ObservationLayout;
using testing_views::node;
using testing_views::view_of;

TEST(Features, PutsEveryFeatureInItsPlace) {
  View view = view_of({node(3, 2, 50, 40)});
  view.task = {.operations = 999'999'999'999.0, .data_bytes = 100, .writes = true, .units = 1};
  view.nodes[0].free_fast_bytes = 4096ULL * ((1 << 20) - 1);
  const Observation seen = observe(view, {.slow_share = 0.25});
  ASSERT_EQ(seen.values.size(), Layout::kSize);
  EXPECT_FLOAT_EQ(seen.values[Layout::kUtilisation + 3], 0.5F);     // log2(1 + 2/2) / 2
  EXPECT_FLOAT_EQ(seen.values[Layout::kFreeFast + 3], 1.0F);        // 4 GiB
  EXPECT_FLOAT_EQ(seen.values[Layout::kOverlap + 3], 0.5F + 0.1F);  // half fast, 0.4 slow
  EXPECT_FLOAT_EQ(seen.values[Layout::kOperations], 1.0F);          // 10^12
  EXPECT_NEAR(seen.values[Layout::kDataSize], std::log2(1 + 100.0 / 4096) / 20, 1e-6);
  EXPECT_FLOAT_EQ(seen.values[Layout::kWrites], 1.0F);
  EXPECT_FLOAT_EQ(seen.values[Layout::kUtilisation + 2], 0.0F);
}

TEST(Features, MarksPresentNodesAndCandidates) {
  View view = view_of({node(0), node(5), node(200)});
  view.nodes[1].candidate = false;
  const Observation seen = observe(view);
  EXPECT_EQ(seen.present.count(), 2u) << "slot 200 has no output";
  EXPECT_TRUE(seen.present[5]);
  EXPECT_FALSE(seen.candidates[5]);
  EXPECT_TRUE(seen.candidates[0]);
}

TEST(Features, FewerSlotsLeaveOutMoreNodes) {
  const View view = view_of({node(0), node(5)});
  const Observation seen = observe(view, {.slots = 5});
  EXPECT_EQ(seen.present, SlotMask(1));
  EXPECT_EQ(seen.candidates, SlotMask(1));
}

TEST(Features, OnlyNodesThatAreAlikeAreExchangeable) {
  View view = view_of({node(0), node(1)});
  EXPECT_TRUE(observe(view).exchangeable);
  view.nodes[1].units = 3;
  EXPECT_FALSE(observe(view).exchangeable);
}

TEST(Features, ImpossibleNumbersStayFinite) {
  for (double operations : {std::nan(""), -1.0, std::numeric_limits<double>::infinity()}) {
    View view = view_of({node(0)}, 0);
    view.task.operations = operations;
    view.nodes[0].units = 0;
    view.nodes[0].assigned = UINT32_MAX;
    view.nodes[0].free_fast_bytes = UINT64_MAX;
    view.nodes[0].held_fast_bytes = UINT64_MAX;
    for (float value : observe(view).values) {
      ASSERT_TRUE(std::isfinite(value));
      ASSERT_LE(std::abs(value), 20.0F);
    }
  }
}

TEST(Features, OverlapNeverExceedsTheData) {
  const View view = view_of({node(0, 0, 500, 500)}, 100);
  EXPECT_FLOAT_EQ(observe(view).values[Layout::kOverlap], 1.0F);
}

}  // namespace
}  // namespace tierpilot
