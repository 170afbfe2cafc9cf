#include "policies/sim/gang/data_places.h"

#include <gtest/gtest.h>

#include "policies/sim/gang/gang_suite.h"

namespace tierpilot::gang {
namespace {

constexpr uint32_t kSpreadsWell = 1;

// One job on two nodes of two units; its data is on the second node, ten hours away, its checkpoint
// takes one hour.
GangScene far_from_its_data(std::vector<std::vector<double>> times_h) {
  GangScene scene{.jobs = {{.units = 2, .work_h = 5, .network = kSpreadsWell}},
                  .units = 4,
                  .units_per_node = 2,
                  .costs = {},
                  .failures = {}};
  scene.failures.times_h = std::move(times_h);
  scene.failures.past = {0, 0, 0, 0};
  scene.failures.past_h = 1000;
  scene.costs.checkpoint_h = 0;
  scene.data = {{.bytes = 100, .nodes = {1}, .checkpoint_bytes = 10}};
  scene.bytes_per_h = {10, 10};
  return scene;
}

TEST(DataPlaces, AJobBeginsOnceItsNodesHaveItsData) {
  const auto scene = far_from_its_data({{}, {}, {}, {}});
  const auto far = simulate(scene, **make_placer("first-fit", 1));
  EXPECT_NEAR(far.makespan_h, 10 + 5, 1e-6);
  EXPECT_NEAR(far.fetch_unit_h, 2 * 10, 1e-6);
  EXPECT_NEAR(simulate(scene, **make_placer("expected-time", 1)).makespan_h, 5, 1e-6);
}

TEST(DataPlaces, ARestartElsewhereFetchesTheCheckpoint) {
  // The second node fails; the first has neither the data nor the checkpoint.
  auto scene = far_from_its_data({{}, {}, {2}, {}});
  const auto result = simulate(scene, **make_placer("expected-time", 1));
  EXPECT_EQ(result.restarts, 1U);
  EXPECT_NEAR(result.makespan_h, 2 + scene.costs.restart_h + 10 + 1 + 3, 0.1);
}

TEST(DataPlaces, WhatWasFetchedStays) {
  const auto scene = far_from_its_data({{}, {}, {}, {}});
  DataPlaces places(scene);
  EXPECT_EQ(places.fetch_h(0), (std::vector<double>{10, 10, 0, 0}));
  places.ran(0, {0});
  EXPECT_EQ(places.fetch_h(0), (std::vector<double>{0, 0, 1, 1}));
}

TEST(DataPlaces, AFailureWhileFetchingLosesNoWork) {
  const auto scene = far_from_its_data({{4}, {}, {}, {}});
  const auto result = simulate(scene, **make_placer("first-fit", 1));
  EXPECT_EQ(result.restarts, 1U);
  EXPECT_GE(result.lost_unit_h, 0);
  EXPECT_EQ(result.unfinished, 0U);
}

TEST(GangSuite, RatesThatDriftDoSoWhileJobsCome) {
  const auto suite = gang_suite(64);
  size_t drifting = 0, changed = 0;
  for (const auto& cell : suite.cells) {
    if (cell.setting != FailureSetting::kDrifting) continue;
    ++drifting;
    const auto scene = scene_of(suite, cell, 1);
    EXPECT_GT(scene.failures.changes_h, 0);
    EXPECT_LT(scene.failures.changes_h, scene.jobs.back().arrival_h);
    changed += scene.failures.per_h_before != scene.failures.per_h_after;
  }
  EXPECT_GT(drifting, 0U);
  EXPECT_GT(changed, drifting / 2) << "half of the units draw anew";
}

TEST(DataPlaces, TheSuiteHasJobsWithData) {
  const auto suite = gang_suite(64);
  const auto with = std::count_if(suite.cells.begin(), suite.cells.end(),
                                  [](const auto& cell) { return cell.with_data; });
  EXPECT_EQ(with, 8);
  for (const auto& cell : suite.cells) {
    const auto scene = scene_of(suite, cell, 1);
    EXPECT_EQ(scene.data.size(), cell.with_data ? scene.jobs.size() : 0U);
  }
}

}  // namespace
}  // namespace tierpilot::gang
