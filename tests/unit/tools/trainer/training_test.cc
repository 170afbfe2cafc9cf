// Trainings with a node that the test plays: what they say, when they save, how they end, and that
// what goes on from a saved state ends where it would have ended.
#include "tools/trainer/training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/engine.h>

#include <filesystem>
#include <stdexcept>

#include "tests/support/job_node.h"
#include "tests/unit/tools/trainer/gang_of_threads.h"

namespace tierpilot::trainer {
namespace {

using ::testing::HasSubstr;

using Interrupted = std::function<std::optional<std::string>()>;

class TrainingTest : public testing::Test {
 protected:
  TrainingPlan plan(ModelKind model, uint64_t steps = 40) {
    return {.problem = {.model = model, .seed = 3, .samples = 300, .batch = 30},
            .steps = steps,
            .state_file = node_.folder() / "state"};
  }
  // Every rank asks `interrupted`, but on its own.
  std::vector<TrainingEnd> train(
      uint32_t world, const TrainingPlan& plan, bool resumes = false,
      const Interrupted& interrupted = [] { return std::nullopt; }) {
    return as_gang<TrainingEnd>(world, [&](Group& group) {
      Job nobody("");
      Training training(
          plan, group, nobody, group.place().rank == world - 1 ? interrupted : [] {
            return std::optional<std::string>();
          });
      if (resumes)
        if (auto status = training.resume(plan.state_file); !status)
          throw std::runtime_error(status.error().message);
      auto end = training.run();
      return end ? *end : TrainingEnd{.stopped = end.error().message};
    });
  }

  agent::JobNode node_;
};

// Says so when it is asked for the `calls`th time.
Interrupted after(int calls) {
  return [calls]() mutable {
    return --calls < 0 ? std::optional<std::string>("enough") : std::nullopt;
  };
}

TEST_F(TrainingTest, GoesOnToTheSameBitsFromWhereItStopped) {
  for (const auto model :
       {ModelKind::kMlp, ModelKind::kConv, ModelKind::kLogistic, ModelKind::kResidual})
    for (const uint32_t world : {1u, 2u}) {
      const auto undisturbed = train(world, plan(model));
      EXPECT_EQ(undisturbed[0].step, 40u);
      EXPECT_FALSE(undisturbed[0].stopped);
      const auto first = train(world, plan(model), false, after(16));
      for (const auto& rank : first) EXPECT_EQ(rank.step, 17u) << "all after the same step";
      EXPECT_EQ(first.back().stopped, "enough");
      EXPECT_NE(first[0].loss, undisturbed[0].loss);
      const auto second = train(world, plan(model), true);
      for (const auto& rank : second) {
        EXPECT_EQ(rank.began_at, 17u);
        EXPECT_EQ(rank.step, 40u);
        EXPECT_EQ(rank.loss, undisturbed[0].loss);
      }
    }
}

TEST_F(TrainingTest, MoreRanksEndAtTheSameLossButForRounding) {
  const auto alone = train(1, plan(ModelKind::kMlp));
  const auto three = train(3, plan(ModelKind::kMlp));
  EXPECT_NEAR(three[0].loss, alone[0].loss, 1e-4 * alone[0].loss);
}

TEST_F(TrainingTest, WhatIsDoneAlreadyOnlySaysItsLoss) {
  const auto undisturbed = train(1, plan(ModelKind::kLogistic));
  const auto again = train(1, plan(ModelKind::kLogistic), true);
  EXPECT_EQ(again[0].began_at, 40u);
  EXPECT_EQ(again[0].loss, undisturbed[0].loss);
}

TEST_F(TrainingTest, TellsItsNodeHowFarItIsAndSavesAtItsEnd) {
  std::vector<agent::JobCheckpoint> saved;
  node_.channels().checkpoint = [&](AttemptId attempt, const agent::JobCheckpoint& checkpoint) {
    saved.push_back(checkpoint);
    node_.channels().say(attempt, agent::job_checkpoint_saved_line(checkpoint.iteration, 1, 1));
  };
  Job job(node_.socket());
  const auto what = plan(ModelKind::kMlp);
  node_.beside([&] {
    auto group = Group::meet({}, std::chrono::seconds(1));
    const auto measures = [] { return std::map<std::string, double>{{"swap_late", 7}}; };
    const auto end = Training(
                         what, *group, job, [] { return std::nullopt; }, measures)
                         .run();
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->step, 40u);
  });
  node_.pass(300);
  const auto reports = node_.channels().take_reports();
  ASSERT_FALSE(reports.empty());
  const auto& last = reports.back().progress;
  EXPECT_EQ(last.iteration, 40u);
  EXPECT_EQ(last.iterations, 40u);
  EXPECT_EQ(last.samples, 40u * 30);
  ASSERT_TRUE(last.loss);
  EXPECT_LT(*last.loss, *reports.front().progress.loss);
  EXPECT_THAT(last.measures, testing::Contains(testing::Pair("swap_late", 7)));
  ASSERT_EQ(saved.size(), 1u);
  EXPECT_EQ(saved[0].iteration, 40u);
  EXPECT_EQ(saved[0].path, what.state_file);
}

TEST_F(TrainingTest, SavesWhenItsNodeAsksAndEndsWhenItIsToldTo) {
  std::vector<uint64_t> saved;
  node_.channels().checkpoint = [&](AttemptId attempt, const agent::JobCheckpoint& checkpoint) {
    saved.push_back(checkpoint.iteration);
    node_.channels().say(attempt, agent::job_checkpoint_saved_line(checkpoint.iteration, 1, 1));
    if (saved.size() == 1) node_.channels().stop(attempt, "node drains");
  };
  Job job(node_.socket());
  node_.pass();
  node_.channels().say(agent::JobNode::kJob, agent::job_checkpoint_now_line("drain"));
  auto what = plan(ModelKind::kLogistic, 1'000'000'000);
  what.pace = std::chrono::milliseconds(1);
  node_.beside([&] {
    auto group = Group::meet({}, std::chrono::seconds(1));
    const auto end = Training(what, *group, job, [] { return std::nullopt; }).run();
    ASSERT_TRUE(end) << end.error().message;
    EXPECT_EQ(end->stopped, "node drains");
  });
  ASSERT_GE(saved.size(), 1u);
  EXPECT_LT(saved.back(), what.steps);
  const auto state = load_state(what.state_file, training_in_words(what), 21);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->step, saved.back());
}

TEST_F(TrainingTest, WhatDivergesSaysWhatToDo) {
  auto wild = plan(ModelKind::kMlp);
  wild.rate = 100;
  const auto ends = train(2, wild);
  for (const auto& end : ends) EXPECT_THAT(end.stopped.value_or(""), HasSubstr("--rate"));
}

// Each step looks at the loss before it.
TEST_F(TrainingTest, WhatDivergesInItsLastStepDoesTooAndSavesNothing) {
  auto wild = plan(ModelKind::kMlp);
  wild.rate = 100;
  size_t diverged = 0;
  for (wild.steps = 1; wild.steps < 12; ++wild.steps) {
    wild.state_file = node_.folder() / std::to_string(wild.steps);
    const auto end = train(1, wild)[0];
    EXPECT_EQ(end.stopped.has_value(), !std::isfinite(end.loss) || end.loss == 0) << wild.steps;
    EXPECT_EQ(std::filesystem::exists(wild.state_file), !end.stopped) << wild.steps;
    diverged += end.stopped.has_value();
  }
  EXPECT_GT(diverged, 0U);
}

TEST_F(TrainingTest, AStateThatCannotBeSavedEndsIt) {
  auto nowhere = plan(ModelKind::kMlp);
  nowhere.state_file = node_.folder() / "none" / "state";
  EXPECT_THAT(train(1, nowhere)[0].stopped.value_or(""), HasSubstr(nowhere.state_file.string()));
}

// Whose backward passes fail after so many, as where a tensor cannot be had back.
class FailingEngine : public torch::autograd::Engine {
 public:
  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs, bool keep,
                                         bool create, bool accumulate,
                                         const torch::autograd::edge_list& outputs) override {
    if (left-- == 0) throw std::runtime_error("the disk is gone\nException raised from here");
    return Engine::execute(roots, inputs, keep, create, accumulate, outputs);
  }
  int left = 0;
};

torch::autograd::Engine& failing_engine() {
  static auto* const engine = new FailingEngine;
  return *engine;
}

TEST_F(TrainingTest, WhatCannotBeComputedIsSaidAndWhatWasDoneIsKept) {
  const auto what = plan(ModelKind::kMlp);
  const auto undisturbed = train(1, what);
  std::filesystem::remove(what.state_file);
  static_cast<FailingEngine&>(failing_engine()).left = 5;
  torch::autograd::set_default_engine_stub(&failing_engine);
  const auto failed = train(1, what);
  torch::autograd::set_default_engine_stub(&torch::autograd::Engine::get_base_engine);
  EXPECT_EQ(failed[0].stopped, "iteration 6 cannot be computed: the disk is gone");
  const auto second = train(1, what, true);
  EXPECT_EQ(second[0].began_at, 5U);
  EXPECT_EQ(second[0].loss, undisturbed[0].loss);
}

}  // namespace
}  // namespace tierpilot::trainer
