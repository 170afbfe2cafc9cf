#include <gtest/gtest.h>

#include <set>

#include "policies/sim/gang/published_training.h"

namespace tierpilot::gang {
namespace {

constexpr uint32_t kSpreadsWell = 1;

// Four units on two nodes, of which one fails every hour or so; two jobs on one unit each.
GangScene with_a_bad_unit(uint64_t seed, uint32_t bad) {
  SeededRandom random(seed);
  GangScene scene{.jobs = {}, .units = 4, .units_per_node = 2, .costs = {}, .failures = {}};
  for (int i = 0; i < 6; ++i)
    scene.jobs.push_back(
        {.arrival_h = 12.0 * i, .units = 1, .work_h = 10, .network = kSpreadsWell});
  scene.costs.restart_h = 2;
  scene.failures.times_h.resize(4);
  for (double at_h = 0; at_h < 1000;)
    scene.failures.times_h[bad].push_back(at_h += random.exponential(1));
  scene.failures.past = {0, 0, 0, 0};
  scene.failures.past_h = 1000;
  return scene;
}

// By how many of the jobs the bad unit is taken.
int uses_of(uint32_t bad, const std::shared_ptr<const PublishedNets>& nets) {
  const auto placer = make_published_placer(nets);
  int uses = 0;
  for (uint32_t busy = 0; busy < 4; ++busy) {
    PlacementState state;
    state.node = {0, 0, 1, 1};
    state.free = {true, true, true, true};
    if (busy != bad) state.free[busy] = false;
    state.per_h.assign(4, 1e-3);
    uses += placer->place(state, {.units = 1, .work_h = 10}).front() == bad ? 1 : 0;
  }
  return uses;
}

TEST(Published, NetworksHaveThePublishedWidths) {
  const PublishedNets nets(12, 1);
  EXPECT_EQ(nets.value.widths(), (std::vector<uint32_t>{14, 256, 196, 196, 128, 1}));
  EXPECT_EQ(nets.policy.widths(), (std::vector<uint32_t>{14, 256, 196, 196, 128, 12}));
}

TEST(Published, BusyAndFailedUnitsAreNeverTaken) {
  const auto nets = std::make_shared<const PublishedNets>(16, 1);
  const auto placer = make_published_placer(nets);
  SeededRandom random(2);
  for (int round = 0; round < 50; ++round) {
    PlacementState state;
    uint32_t free = 0;
    for (uint32_t unit = 0; unit < 16; ++unit) {
      state.node.push_back(unit / 4);
      state.free.push_back(unit == 0 || random.chance(0.5));
      state.per_h.push_back(1e-3);
      free += state.free.back() ? 1 : 0;
    }
    const auto units = placer->place(state, {.units = free, .work_h = 1});
    EXPECT_EQ(std::set<uint32_t>(units.begin(), units.end()).size(), free);
    for (const uint32_t unit : units) EXPECT_TRUE(state.free[unit]);
  }
}

TEST(Published, LearnsToAvoidTheUnitThatFails) {
  for (const auto batch : {PublishedSettings::Batch::kAsProduced, PublishedSettings::Batch::kAll})
    for (const uint32_t bad : {0U, 2U}) {
      PublishedTrainer trainer(4, {.batch = batch, .kept = 256, .rate = 1e-3F, .seed = 3});
      for (uint64_t workload = 1; workload <= 150; ++workload)
        trainer.learn(with_a_bad_unit(workload, bad));
      EXPECT_EQ(uses_of(bad, trainer.nets()), 0) << "unit " << bad;
    }
}

TEST(Published, MoreRandomPlacementsSetTheRewardLower) {
  const auto reward = [](uint32_t placements) {
    PublishedTrainer trainer(4, {.random_placements = placements, .seed = 3});
    return trainer.learn(with_a_bad_unit(1, 0)).reward;
  };
  EXPECT_LE(reward(100), reward(1));
}

TEST(IntervalReplay, TheOldestFallOut) {
  IntervalReplay replay(3);
  std::vector<PublishedStep> steps(2);
  steps[0].unit = 1;
  steps[1].unit = 2;
  replay.add(steps);
  steps[0].unit = 3;
  steps[1].unit = 4;
  replay.add(steps);
  SeededRandom random(1);
  std::vector<uint32_t> kept;
  for (const auto* step : replay.draw(PublishedSettings::Batch::kAll, random))
    kept.push_back(step->unit);
  EXPECT_EQ(kept, (std::vector<uint32_t>{2, 3, 4}));
}

TEST(IntervalReplay, TheBatchIsAsLargeAsWhatTheLastWorkloadBrought) {
  IntervalReplay replay(100);
  SeededRandom random(1);
  replay.add(std::vector<PublishedStep>(40));
  EXPECT_EQ(replay.draw(PublishedSettings::Batch::kAsProduced, random).size(), 40U);
  replay.add(std::vector<PublishedStep>(7));
  EXPECT_EQ(replay.draw(PublishedSettings::Batch::kAsProduced, random).size(), 7U);
  EXPECT_EQ(replay.draw(PublishedSettings::Batch::kAll, random).size(), 47U);
}

}  // namespace
}  // namespace tierpilot::gang
