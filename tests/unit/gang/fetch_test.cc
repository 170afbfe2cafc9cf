// What jobs must fetch, in placements: see PlacementState::fetch_h.
#include <gtest/gtest.h>

#include <set>

#include <cmath>
#include <limits>
#include "policies/gang/learned/ac_net.h"
#include "policies/gang/placement/rank_slots.h"

namespace tierpilot::gang {
namespace {

// Four nodes of two units, all free, equally sound but for the last node, which is a little worse
// and alone has what the job needs.
PlacementState near_the_last_node(double far_h) {
  PlacementState state;
  state.units_per_node = 2;
  state.node = {0, 0, 1, 1, 2, 2, 3, 3};
  state.free.assign(8, true);
  state.per_h = {1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 1e-4, 2e-4, 2e-4};
  state.fetch_h.assign(8, far_h);
  state.fetch_h[6] = state.fetch_h[7] = 0;
  return state;
}

TEST(Fetch, TheFarthestNodeCountsOnceInExpectedHours) {
  const auto near = near_the_last_node(0), far = near_the_last_node(3);
  const Job job{.units = 2, .work_h = 10};
  const auto more = [&](const Units& units) {
    return expected_hours(far, job, 10, units) - expected_hours(near, job, 10, units);
  };
  EXPECT_NEAR(more({0, 2}), 3, 1e-9);
  EXPECT_NEAR(more({0, 6}), 3, 1e-9);
  EXPECT_NEAR(more({6, 7}), 0, 1e-9);
}

TEST(Fetch, NodesThatHaveTheDataAreAmongTheCandidates) {
  const std::set<Units> candidates = [] {
    auto all = many_candidates(near_the_last_node(3), 2);
    return std::set<Units>(all.begin(), all.end());
  }();
  EXPECT_TRUE(candidates.contains(Units{6, 7}));
}

TEST(Fetch, LongFetchesAreWorthAWorseNodeAndShortOnesAreNot) {
  for (const char* name : {"expected-time", "ac"}) {
    const auto placer = std::string_view(name) == "ac" ? make_ac_placer(std::make_shared<AcNet>(1))
                                                       : std::move(*make_placer(name, 1));
    const Job job{.units = 2, .work_h = 10};
    EXPECT_EQ(placer->place(near_the_last_node(3), job), (Units{6, 7})) << name;
    EXPECT_NE(placer->place(near_the_last_node(1e-6), job), (Units{6, 7})) << name;
  }
}

TEST(Fetch, RanksSeeWhatTheirNodesMustFetch) {
  const auto placer = make_placer("expected-time", 1);
  const auto placed = place_ranks(near_the_last_node(3), {.work_h = 10},
                                  {.ranks = 1, .units_per_rank = 2}, **placer);
  ASSERT_TRUE(placed.has_value());
  EXPECT_EQ(std::set<uint32_t>(placed->units[0].begin(), placed->units[0].end()),
            (std::set<uint32_t>{6, 7}));
}

TEST(Fetch, TimesThatNobodyExpectsGiveFiniteInputs) {
  for (const double far_h : {0.0, 1e-12, 1e300, std::numeric_limits<double>::infinity()}) {
    const auto input = ac_input(near_the_last_node(far_h), {.units = 3, .work_h = 1});
    for (const float value : input.state) EXPECT_TRUE(std::isfinite(value));
    for (const auto& candidate : input.candidates)
      for (const auto& seen : candidate.seen)
        for (const float value : seen) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(Fetch, WeightsFromBeforeItAreRefusedByTheirVersion) {
  auto text = ac_weights_text(AcNet(1), "test");
  text.replace(0, text.find(';'), "tierpilot ac 1");
  const auto read = read_ac_weights(text, "old.weights");
  ASSERT_FALSE(read.has_value());
  EXPECT_NE(read.error().message.find("old.weights:1"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::gang
