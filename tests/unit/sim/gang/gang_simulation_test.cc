#include "policies/sim/gang/gang_simulation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/sim/gang/gang_suite.h"

namespace tierpilot::gang {
namespace {

constexpr uint32_t kWideNetwork = 1;  // a network as fast on two nodes

// Four units on two nodes, and failures as told.
GangScene small_scene(std::vector<Job> jobs, std::vector<std::vector<double>> times_h) {
  GangScene scene{
      .jobs = std::move(jobs), .units = 4, .units_per_node = 2, .costs = {}, .failures = {}};
  scene.failures.times_h = std::move(times_h);
  scene.failures.past = {0, 0, 0, 0};
  scene.failures.past_h = 1000;
  scene.costs.checkpoint_h = 0;
  return scene;
}

GangResult run(const GangScene& scene, const char* placer) {
  return simulate(scene, **make_placer(placer, 1));
}

TEST(GangSimulation, WithoutFailuresAJobTakesItsWork) {
  const auto result =
      run(small_scene({{.units = 2, .work_h = 5, .network = kWideNetwork}}, {{}, {}, {}, {}}),
          "first-fit");
  EXPECT_NEAR(result.makespan_h, 5, 1e-9);
  EXPECT_EQ(result.restarts, 0U);
  EXPECT_EQ(result.lost_unit_h, 0);
}

TEST(GangSimulation, AFailureEndsTheGangAndCostsTheRestart) {
  auto scene = small_scene({{.units = 2, .work_h = 5, .network = kWideNetwork}}, {{2}, {}, {}, {}});
  const auto result = run(scene, "first-fit");
  EXPECT_EQ(result.restarts, 1U);
  EXPECT_NEAR(result.makespan_h, 5 + scene.costs.restart_h, 0.01);
}

TEST(GangSimulation, WhatWasDoneSinceTheLastCheckpointIsLost) {
  auto scene = small_scene({{.units = 2, .work_h = 5, .network = kWideNetwork}}, {{2}, {}, {}, {}});
  scene.costs.checkpoint_h = 100;  // the first would come after the failure
  const auto result = run(scene, "first-fit");
  EXPECT_NEAR(result.lost_unit_h, 2 * 2, 1e-9);
}

TEST(GangSimulation, TheClairvoyantAvoidsWhatWillFail) {
  const auto scene =
      small_scene({{.units = 2, .work_h = 5, .network = kWideNetwork}}, {{2}, {3}, {}, {}});
  EXPECT_GT(run(scene, "first-fit").restarts, 0U);
  EXPECT_EQ(run(scene, "clairvoyant").restarts, 0U);
}

TEST(GangSimulation, AJobThatWaitedLongIsNotOvertakenForEver) {
  std::vector<Job> jobs{{.units = 1, .work_h = 10}, {.units = 4, .work_h = 1}};
  for (int i = 0; i < 40; ++i) jobs.push_back({.arrival_h = 1.0 * i, .units = 1, .work_h = 3});
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const auto& a, const auto& b) { return a.arrival_h < b.arrival_h; });
  const auto result = run(small_scene(jobs, {{}, {}, {}, {}}), "best-fit");
  EXPECT_EQ(result.unfinished, 0U);
  EXPECT_LT(result.p99_completion_h, 45);
}

class EachPlacer : public testing::TestWithParam<std::string> {};

TEST_P(EachPlacer, GivesFreeUnitsOnceAndAsManyAsAreAsked) {
  SeededRandom random(7);
  const auto failures = draw_failures({.units = 64, .units_per_node = 8, .until_h = 100});
  const auto placer = make_placer(GetParam(), 3);
  ASSERT_TRUE(placer.has_value());
  for (int round = 0; round < 50; ++round) {
    PlacementState state{.now_h = 1.0 * round,
                         .units_per_node = 8,
                         .node = {},
                         .free = {},
                         .per_h = {},
                         .rate_shape = {},
                         .fetch_h = {},
                         .waiting_units = 0,
                         .costs = {},
                         .next_failure_h = [&](uint32_t unit, double after_h) {
                           return failures.next(unit, after_h);
                         }};
    uint32_t free = 0;
    for (int i = 0; i < 64; ++i) {
      state.node.push_back(static_cast<uint32_t>(i / 8));
      state.free.push_back(random.chance(0.6));
      free += state.free.back();
      state.per_h.push_back(random.log_uniform(1e-5, 1e-1));
    }
    const Job job{.units = 1 + static_cast<uint32_t>(random.below(free)), .work_h = 10};
    auto units = (*placer)->place(state, job);
    EXPECT_EQ(units.size(), job.units);
    for (const uint32_t unit : units) EXPECT_TRUE(state.free[unit]);
    std::sort(units.begin(), units.end());
    EXPECT_EQ(std::unique(units.begin(), units.end()), units.end());
  }
}

INSTANTIATE_TEST_SUITE_P(All, EachPlacer, testing::ValuesIn(placers().names()),
                         [](const auto& tested) {
                           auto name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(GangSuite, NobodyIsFasterThanTheBoundAndNothingDependsOnThreads) {
  auto suite = gang_suite(16);
  suite.seeds = 2;
  const auto heuristics = [](const auto& name, const auto&, uint64_t seed) {
    return make_placer(name, seed);
  };
  const auto one = run_gangs(suite, heuristics, 1, [](double) {});
  const auto two = run_gangs(suite, heuristics, 2, [](double) {});
  ASSERT_TRUE(one && two);
  for (size_t i = 0; i < one->size(); ++i) {
    EXPECT_GE((*one)[i].result.makespan_h, (*one)[i].result.bound_h * (1 - 1e-9));
    EXPECT_EQ((*one)[i].result.makespan_h, (*two)[i].result.makespan_h);
    EXPECT_EQ((*one)[i].result.unfinished, 0U);
  }
}

TEST(GangSuite, AnUnknownPolicyIsNamed) {
  const auto made = make_placer("lucky", 1);
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().message.find("expected-time"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::gang
