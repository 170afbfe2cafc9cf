#include "coordinator/core/elastic/elastic_cores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kUnits = 8;
constexpr uint32_t kCpus = 4;

class ElasticCoresTest : public CoreTest {
 protected:
  ElasticCoresTest() {
    settings_.elastic_period_ms = 1000;
    restart();  // with these settings
    sharing_ =
        std::make_unique<ElasticCores>(*state_, std::move(*quality::make_allocator("quality")));
    elastic_started_ = [this](const Task& task) { sharing_->started(task); };
    node_ = std::make_shared<FakeNode>();
    auto facts = CoreTest::facts("n1");
    facts.units = kUnits;
    facts.cpus = kCpus;
    const auto ticket = membership_->join(facts, node_, {}, {});
    EXPECT_TRUE(ticket);
  }
  const Task& start(uint32_t least, uint32_t most, const TrainingGoal& goal = {}) {
    auto task = spec();
    task.training_goal = goal;
    task.units = least;
    task.max_units = most;
    const auto receipt = submit({task});
    EXPECT_TRUE(receipt) << receipt.error().message;
    const auto attempt = assign(receipt->first_task, "n1");
    lifecycle_->started("n1", attempt);
    return *state_->tasks.find(receipt->first_task);
  }
  void tick() {
    clock_.advance_ns(1'100'000'000);
    sharing_->tick();
  }
  // One iteration takes 10 ms of CPU time.
  void say(const Task& task, uint64_t iteration, std::optional<double> loss,
           const std::vector<std::pair<std::string, Figure>>& measures = {}) {
    JobPoint point{.attempt = task.attempt,
                   .at_ms = clock_.wall_ms(),
                   .iteration = iteration,
                   .loss = {loss, loss ? "" : "the job did not say"},
                   .measures = measures,
                   .cpu_ns = iteration * 10'000'000,
                   .milli_units = units_of(task)};
    sharing_->reported(task, point);
  }
  // All learn alike, each as fast as its units let it.
  void train(const std::vector<const Task*>& jobs) {
    std::map<uint64_t, uint64_t> iterations;
    for (int i = 0; i < 40; ++i) {
      tick();
      for (const auto* job : jobs) {
        auto& at = iterations[job->id];
        at += units_of(*job) / 200;
        say(*job, at, 1000.0 / (static_cast<double>(at) + 100));
      }
    }
    tick();
  }
  uint32_t units_of(const Task& task) {
    uint32_t last = 0;
    for (const auto& [attempt, milli] : node_->shares)
      if (attempt.task == task.id) last = milli;
    return last;
  }

  std::unique_ptr<ElasticCores> sharing_;
  std::shared_ptr<FakeNode> node_;
};

TEST_F(ElasticCoresTest, ThoseThatSayNothingShareEqually) {
  const auto& first = start(1, 8);
  const auto& second = start(1, 8);
  tick();
  EXPECT_EQ(units_of(first), 4000u);
  EXPECT_EQ(units_of(second), 4000u);
  const auto share = sharing_->share_of(first.id);
  ASSERT_TRUE(share);
  EXPECT_EQ(share->units, 4);
  EXPECT_EQ(share->cores, 2);
  EXPECT_THAT(share->reason, HasSubstr("equal share"));
  EXPECT_FALSE(share->gain);
}

TEST_F(ElasticCoresTest, WhoseLossFallsHasMoreThanWhoseLossStays) {
  const auto& falling = start(1, 8);
  const auto& flat = start(1, 8);
  for (uint64_t i = 1; i <= 40; ++i) {
    tick();
    say(falling, i * 10, 100.0 / (static_cast<double>(i) + 10));
    say(flat, i * 10, i < 3 ? 3.0 : 2.0);
  }
  tick();
  EXPECT_GT(units_of(falling), 2 * units_of(flat));
  EXPECT_LE(units_of(falling) + units_of(flat), kUnits * 1000);
  EXPECT_GE(units_of(flat), 1000u) << "what it asked for at least";
  const auto best = sharing_->share_of(falling.id), least = sharing_->share_of(flat.id);
  ASSERT_TRUE(best && best->gain && least && least->gain);
  EXPECT_GT(*best->gain, *least->gain);
  ASSERT_EQ(sharing_->shared_with(flat.id).size(), 1u);
  EXPECT_EQ(sharing_->shared_with(flat.id)[0].task, falling.id);
}

TEST_F(ElasticCoresTest, WhatIsToldToGoIsAPartOfWhatIsLeftWhateverItsWeight) {
  TrainingGoal weighty;
  weighty.weight = 100;
  const auto& plain = start(1, 4);
  const auto& heavy = start(1, 4, weighty);
  for (uint64_t i = 1; i <= 60; ++i) {
    tick();
    for (const auto* job : {&plain, &heavy})
      say(*job, i * 10, 100 * std::exp(-static_cast<double>(i) / 40));
    for (const auto* job : {&plain, &heavy}) {
      const auto share = sharing_->share_of(job->id);
      ASSERT_TRUE(share);
      if (!share->gain) continue;
      EXPECT_LE(*share->gain + *share->gain_of_one_more, *share->loss_left + 1e-9) << i;
      EXPECT_GE(*share->gain_of_one_more, -1e-9) << i;
    }
  }
  EXPECT_GT(*sharing_->share_of(plain.id)->gain, 0);
}

TEST_F(ElasticCoresTest, UnitsOfOtherTasksAreNotDealtOut) {
  const auto& elastic = start(1, 8);
  auto rigid = spec();
  rigid.units = 6;
  const auto receipt = submit({rigid});
  ASSERT_TRUE(receipt);
  assign(receipt->first_task, "n1");
  tick();
  EXPECT_EQ(units_of(elastic), 2000u);
  EXPECT_FALSE(sharing_->share_of(receipt->first_task));
}

TEST_F(ElasticCoresTest, WhoShrinksIsToldFirst) {
  const auto& first = start(1, 8);
  tick();
  EXPECT_EQ(units_of(first), 8000u);
  const auto& second = start(1, 8);
  tick();
  ASSERT_EQ(node_->shares.size(), 3u);
  EXPECT_EQ(node_->shares[1].first.task, first.id);
  EXPECT_EQ(node_->shares[2].first.task, second.id);
}

TEST_F(ElasticCoresTest, WhatTheNodeCouldNotGiveIsAskedForAgain) {
  const auto& only = start(1, 8);
  node_->free_milli = 3000;
  tick();
  EXPECT_EQ(sharing_->share_of(only.id)->units, 3);
  node_->free_milli = UINT32_MAX;
  tick();
  EXPECT_EQ(sharing_->share_of(only.id)->units, 8);
  const size_t orders = node_->shares.size();
  tick();
  EXPECT_EQ(node_->shares.size(), orders) << "nothing has changed";
}

TEST_F(ElasticCoresTest, WhatItsNodeTookForAnotherTaskIsShown) {
  const auto& only = start(1, 8);
  tick();
  ASSERT_EQ(sharing_->share_of(only.id)->units, 8);
  // The node has cut it by itself, and so it is given what it has.
  sharing_->reported(only, {.attempt = only.attempt,
                            .at_ms = clock_.wall_ms(),
                            .iteration = 1,
                            .loss = {},
                            .measures = {},
                            .milli_units = 2000});
  EXPECT_EQ(sharing_->share_of(only.id)->units, 2);
  EXPECT_EQ(sharing_->share_of(only.id)->cores, 1);
}

TEST_F(ElasticCoresTest, NonsenseIsNoLoss) {
  const auto& job = start(1, 8);
  const auto& other = start(1, 8);
  tick();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  for (const double loss : {nan, inf, -inf}) say(job, 1, loss);
  for (uint64_t i = 30; i > 0; --i) say(job, i, 1.0);  // constant, and backwards
  for (uint64_t i = 1; i < 30; ++i) say(other, i, -1e300 * static_cast<double>(i));
  tick();
  EXPECT_THAT(sharing_->share_of(job.id)->reason, HasSubstr("its loss has not changed"));
  EXPECT_GE(units_of(job), 1000u);
  EXPECT_GE(units_of(other), 1000u);
  EXPECT_LE(units_of(job) + units_of(other), kUnits * 1000);
}

TEST_F(ElasticCoresTest, WhatHasEndedIsForgotten) {
  const auto& first = start(1, 8);
  const auto& second = start(1, 8);
  const AttemptId ends{second.id, second.attempt};
  tick();
  ASSERT_TRUE(exit("n1", ends, success()));
  EXPECT_FALSE(sharing_->share_of(ends.task));
  tick();
  EXPECT_EQ(units_of(first), 8000u);
}

TEST_F(ElasticCoresTest, AWeightMakesAJobWorthMore) {
  const auto& heavy = start(1, 8, {.weight = 4});
  const auto& light = start(1, 8);
  train({&heavy, &light});
  EXPECT_GT(units_of(heavy), units_of(light));
}

// Of two whose losses say the opposite, the one whose measure still rises has more.
TEST_F(ElasticCoresTest, AnotherMeasureMayBeWhatIsToRise) {
  const TrainingGoal accuracy{.measure = "accuracy", .rises = true};
  const auto& rising = start(1, 8, accuracy);
  const auto& done = start(1, 8, accuracy);
  for (uint64_t i = 1; i <= 40; ++i) {
    tick();
    const auto at = static_cast<double>(i);
    const auto accurate = [](double value) {
      return std::vector{std::pair<std::string, Figure>{"accuracy", {value, {}}}};
    };
    say(rising, i * 10, 2.0, accurate(at / (at + 10)));
    say(done, i * 10, 100 / (at + 10), accurate(i < 3 ? 0.5 : 0.9));
  }
  tick();
  EXPECT_GT(units_of(rising), 2 * units_of(done));
}

TEST_F(ElasticCoresTest, AMeasureThatIsNeverReportedIsSaid) {
  const auto& job = start(1, 8, {.measure = "accuracy", .rises = true});
  tick();
  for (uint64_t i = 1; i <= 10; ++i) say(job, i, 1 / static_cast<double>(i));
  tick();
  EXPECT_THAT(sharing_->share_of(job.id)->reason, HasSubstr("measure 'accuracy'"));
}

// Both learn alike; one would miss its deadline as it goes.
TEST_F(ElasticCoresTest, WhoWouldMissItsDeadlineHasMore) {
  const auto& late = start(1, 8, {.goal = 0.05, .deadline_ms = 60'000});
  const auto& free = start(1, 8);
  train({&late, &free});
  EXPECT_GT(units_of(late), units_of(free));
}

TEST_F(ElasticCoresTest, GoalsOutlastARestart) {
  const TrainingGoal goal{
      .weight = 0.5, .measure = "perplexity", .rises = false, .goal = 12.5, .deadline_ms = 60'000};
  const auto id = start(1, 8, goal).id;
  flush();
  restart();
  ASSERT_NE(state_->tasks.find(id), nullptr);
  EXPECT_EQ(state_->tasks.find(id)->spec.training_goal, goal);
}

}  // namespace
}  // namespace tierpilot::testing
