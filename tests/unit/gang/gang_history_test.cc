#include "policies/sim/gang/gang_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "policies/sim/gang/estimated_failures.h"
#include "policies/sim/gang/training_comparison.h"
#include "tests/support/scratch_directory.h"

namespace tierpilot::gang {
namespace {

constexpr const char* kHead = "{\"schema\":\"tierpilot-history\",\"version\":1}\n";
constexpr const char* kGang =
    "{\"task\":1,\"submitted_ms\":1000,\"started_ms\":2000,\"finished_ms\":7202000,"
    "\"gang\":{\"ranks\":4,\"units_per_rank\":2,\"restarts\":0}}\n";

class GangHistoryFile : public testing::Test {
 protected:
  Result<std::vector<Job>> read(const std::string& text) {
    const auto file = scratch_.path() + "/history.jsonl";
    std::ofstream(file) << text;
    return read_gang_jobs(file);
  }
  ScratchDirectory scratch_;
};

TEST_F(GangHistoryFile, AGangIsAJobAndItsRanksAreNone) {
  const auto jobs =
      read(std::string(kHead) + kGang +
           "{\"task\":2,\"started_ms\":2000,\"finished_ms\":7202000,\"rank_of\":1}\n" +
           "{\"dataset\":\"genes\",\"bytes\":1}\n\nnot JSON\n");
  ASSERT_TRUE(jobs.has_value()) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 1U);
  EXPECT_EQ(jobs->front().units, 8U);
  EXPECT_NEAR(jobs->front().work_h, 2, 1e-9);
}

TEST_F(GangHistoryFile, NestedDeepIsNoHistory) {
  const size_t levels = 500'000;
  EXPECT_FALSE(read("{\"schema\":" + std::string(levels, '[') + std::string(levels, ']') + "}\n"));
}

TEST_F(GangHistoryFile, WhatIsNoHistoryOrHasNoGangIsRefusedByItsName) {
  const std::string never = std::string(kHead) + "{\"gang\":{\"ranks\":4,\"units_per_rank\":2}}\n";
  for (const auto& text :
       {std::string(), std::string("node,start_day\n"), std::string(kHead), never,
        std::string(kHead) + "{\"gang\":{\"ranks\":1e300,\"units_per_rank\":-2},"
                             "\"started_ms\":1,\"finished_ms\":2}\n",
        std::string(kHead) + "{\"gang\":[],\"started_ms\":\"x\"}\n"}) {
    const auto refused = read(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_NE(refused.error().message.find("history.jsonl"), std::string::npos);
  }
}

GangHistory small_history() {
  return {.jobs = {{.units = 3, .work_h = 5}, {.units = 7, .work_h = 9}},
          .failures = {0, 0, 0, 0, 9, 9, 9, 9},
          .hours = 1000,
          .units_per_node = 4};
}

TEST(HistoryScene, HasTheJobsAndTheFailuresThatWereRecorded) {
  const GangCell cell{.units = 16, .units_per_node = 4};
  const auto scene = history_scene(small_history(), {}, cell, 5);
  std::set<uint32_t> sizes;
  for (const auto& job : scene.jobs) sizes.insert(job.units);
  EXPECT_EQ(sizes, (std::set<uint32_t>{3, 7}));
  ASSERT_EQ(scene.failures.past.size(), 16U);
  for (uint32_t unit = 0; unit < 16; ++unit) {
    EXPECT_EQ(scene.failures.past[unit], scene.failures.past[unit - unit % 4]);
    EXPECT_GT(scene.failures.per_h_before[unit], 0);
  }
  EXPECT_EQ(simulate(scene, **make_placer("best-fit", 1)).unfinished, 0U);
}

TEST(EstimatedFailures, ComeAsOftenAsThePastSays) {
  GangScene scene{.jobs = {{.arrival_h = 1e4, .work_h = 1}},
                  .units = 4,
                  .units_per_node = 2,
                  .costs = {},
                  .failures = {}};
  scene.failures.past = {1, 1, 40, 40};
  scene.failures.past_h = 1000;
  double good = 0, bad = 0, drawn_alike = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const auto failures = estimated_failures(scene, TrueRates::kAsEstimated, seed);
    good += static_cast<double>(failures.times_h[0].size());
    bad += static_cast<double>(failures.times_h[2].size());
    const auto drawn = estimated_failures(scene, TrueRates::kDrawn, seed);
    drawn_alike += drawn.per_h_before[0] == failures.per_h_before[0] ? 1 : 0;
  }
  EXPECT_NEAR(bad / good, 40.5 / 1.5, 3);
  EXPECT_EQ(drawn_alike, 0);
}

TEST(ComparedTraining, EveryWayGivesAPlacerAndAnUnknownOneIsNamed) {
  const auto suite = compared_suite(false);
  const auto maker = compared_maker(suite, {.simulated = std::make_shared<const AcNet>(1),
                                            .settings = {.rounds = 1, .scenes = 1},
                                            .workloads = 4});
  for (const auto& name : suite.policies) {
    const auto placer = maker(name, suite.cells.front(), 1);
    ASSERT_TRUE(placer.has_value()) << name;
    const auto scene = scene_of(suite, suite.cells.front(), 1);
    EXPECT_EQ(simulate(scene, **placer).unfinished, 0U) << name;
  }
  const auto unknown = maker("lucky", suite.cells.front(), 1);
  ASSERT_FALSE(unknown.has_value());
  EXPECT_NE(unknown.error().message.find("lucky"), std::string::npos);
}

TEST(ComparedTraining, PublishedWaysRunToo) {
  const auto suite = compared_suite(true);
  const auto maker = compared_maker(suite, {.simulated = nullptr, .settings = {}, .workloads = 1});
  for (const auto& name : {"published-1", "published-1-all", "published-10-estimated"})
    EXPECT_TRUE(maker(name, suite.cells.front(), 1).has_value()) << name;
}

TEST(AcOfHistories, DoesNotLookAtRates) {
  PlacementState state;
  state.units_per_node = 2;
  state.node = {0, 0, 1, 1};
  state.free.assign(4, true);
  state.failed_h = {{}, {}, {-5, -1}, {-1}};
  state.per_h = {1e-3, 1e-3, 1e-3, 1e-3};
  const auto one = ac_input(state, {.units = 2, .work_h = 5}, AcView::kHistories);
  state.per_h = {4e-4, 1.6e-3, 1.9e-3, 1e-4};  // of the same mean
  const auto other = ac_input(state, {.units = 2, .work_h = 5}, AcView::kHistories);
  ASSERT_EQ(one.candidates.size(), other.candidates.size());
  for (size_t i = 0; i < one.candidates.size(); ++i) {
    EXPECT_EQ(one.candidates[i].units, other.candidates[i].units);
    EXPECT_EQ(one.candidates[i].seen, other.candidates[i].seen);
  }
}

}  // namespace
}  // namespace tierpilot::gang
