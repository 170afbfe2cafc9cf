// Which promises are made when tasks come, and what is said of them once tasks have ended.
#include <fmt/format.h>

#include "coordinator/core/sharing/promise_words.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SharePromisesTest : public ShareKeeperTest {
 protected:
  std::string refusal(const TaskSpec& spec) {
    const auto receipt = submit({spec});
    EXPECT_FALSE(receipt);
    return receipt ? "" : receipt.error().message;
  }
  static TaskSpec on_gpu(TaskSpec spec) {
    spec.share.engine = Engine::kGpu;
    return spec;
  }
  void join_gpu(uint64_t memory_bytes = 1 << 30) {
    auto facts = CoreTest::facts("g1");
    facts.shared_units = {{"gpu/X", 1, memory_bytes, "GPU-a"}};
    ASSERT_TRUE(membership_->join(facts, std::make_shared<FakeNode>(), {}, {}));
  }
  // It runs for so long, and ends so.
  ShownShare after(uint64_t id, int seconds, const TaskExit& how) {
    pump();
    pass(seconds);
    EXPECT_TRUE(exit("n1", {id, 1}, how));
    flush();
    return ended(id);
  }
  ShownShare ended(uint64_t id) {
    const auto task = stored(id);
    EXPECT_TRUE(task && is_ended(task->state));
    EXPECT_FALSE(keeper_->share_of(id)) << "it has no share any more";
    return ended_share(*state_, *task).value_or(ShownShare{});
  }
};

TEST_F(SharePromisesTest, NoneIsMadeWhileNoNodeIsUpThatCouldKeepIt) {
  for (const int estimate_s : {0, 60})
    EXPECT_THAT(refusal(on_gpu(promised("train", 100, estimate_s, 600))),
                AllOf(HasSubstr("'train'"), HasSubstr("a promise of 600 s cannot be made"),
                      HasSubstr("GPUs that are shared: none is up")));
  join_gpu();
  EXPECT_TRUE(submit({on_gpu(promised("train", 100, 60, 600))}));
  EXPECT_THAT(refusal(on_gpu(promised("train", 100, 0, 600))), HasSubstr("not known"));
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  EXPECT_THAT(refusal(promised("tune", 900, 60, 600)), HasSubstr("cores that are shared"));
  state_->registry.set_order("n1", {NodeOrder::Kind::kNone});
  EXPECT_TRUE(submit({promised("tune", 900, 60, 600)}));
}

TEST_F(SharePromisesTest, OnTrialItWaitsForANodeWithoutAPromise) {
  auto spec = on_gpu(promised("train", 100, 60, 600));
  EXPECT_THAT(refusal(spec), HasSubstr("let it be on trial"));
  spec.share.promise_on_trial = true;
  const auto id = accept(spec);
  EXPECT_EQ(keeper_->share_of(id)->promise, "on trial");
  pass(601);
  EXPECT_THAT(keeper_->share_of(id)->promise, HasSubstr("not made: its time was over"));
  EXPECT_FALSE(keeper_->share_of(id)->promise_left_s);
}

TEST_F(SharePromisesTest, WhatWasMadeStaysMadeWhileNoNodeIsBack) {
  const auto id = accept(promised("a", 900, 60, 600));
  restart_coordinator();
  const auto shown = keeper_->share_of(id);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->promise, "made");
  EXPECT_NEAR(shown->promise_left_s.value_or(0), 600, 1);
  EXPECT_THAT(refusal(promised("b", 100, 10, 600)), HasSubstr("none is up"));
  node_ = join_sharing("n1", 1);
  pump();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
  EXPECT_EQ(keeper_->share_of(id)->promise, "made");
  pass(610);
  EXPECT_THAT(keeper_->share_of(id)->promise, HasSubstr("made; late: its time was over 1"));
}

// What a node holds that is still away may have to run on those that are back.
TEST_F(SharePromisesTest, NoneIsMadeWithRoomThatANodeWhichIsAwayMayNeed) {
  join_sharing("n2", 1);
  const auto a = accept(promised("a", 1000, 60, 120)), b = accept(promised("b", 1000, 60, 250));
  pump();
  ASSERT_NE(task(a).node, task(b).node);
  const auto& away = task(a).node == "n2" ? a : b;
  const auto& back = task(a).node == "n2" ? b : a;
  restart_coordinator();
  join_sharing("n1", 1, {{back, 1}});
  const auto third = promised("c", 1000, 60, 230);
  EXPECT_THAT(refusal(third), HasSubstr("cannot be made"));
  join_sharing("n2", 1, {{away, 1}});
  accept(third);
}

TEST_F(SharePromisesTest, NoneIsMadeOnANodeWhoseConnectionIsGone) {
  auto spec = promised("a", 500, 60, 300);
  spec.node = "n1";
  state_->registry.find("n1")->link.reset();
  EXPECT_THAT(refusal(spec), HasSubstr("node 'n1': it is not connected"));
  spec.node.clear();
  EXPECT_THAT(refusal(spec), HasSubstr("none is up"));
  node_ = join_sharing("n1", 1);
  accept(spec);
}

TEST_F(SharePromisesTest, OfATaskForANodeOnlyThatOneCounts) {
  join_sharing("n2", 1);
  auto first = promised("a", 1000, 100, 250), second = promised("b", 1000, 100, 250);
  first.node = second.node = "n2";
  accept(first);
  EXPECT_THAT(refusal(second), HasSubstr("cannot be made"));
  second.node = "n1";
  accept(second);
  state_->registry.set_order("n2", {NodeOrder::Kind::kCordoned});
  auto third = promised("c", 100, 10, 600);
  third.node = "n2";
  EXPECT_THAT(refusal(third), HasSubstr("node 'n2'"));
}

TEST_F(SharePromisesTest, AGpuThatIsNotSoundKeepsNone) {
  join_gpu();
  const auto spec = on_gpu(promised("train", 100, 60, 600));
  state_->units.say_unhealthy("g1", {{"g1/gpu/GPU-a", "MPS hangs"}});
  EXPECT_THAT(refusal(spec), HasSubstr("cannot be made"));
  state_->units.say_unhealthy("g1", {});
  EXPECT_TRUE(submit({spec}));
}

TEST_F(SharePromisesTest, WhatNoUnitHasTheMemoryForSaysSo) {
  auto spec = on_gpu(shared("train", 600));
  spec.memory_bytes = uint64_t{2} << 30;
  const auto early = accept(spec);
  join_gpu();
  pump();
  EXPECT_THAT(task(early).reason, AllOf(HasSubstr("2.0 GiB"), HasSubstr("1.0 GiB")));
  EXPECT_THAT(refusal(spec), AllOf(HasSubstr("2.0 GiB"), HasSubstr("more than 1.0 GiB")));
  auto fits = on_gpu(shared("train", 600));
  fits.memory_bytes = uint64_t{1} << 30;
  accept(fits);
}

TEST_F(SharePromisesTest, WhoWasDoneInTimeTellsByHowMuch) {
  const auto shown = after(accept(promised("a", 900, 60, 300)), 81, success());
  EXPECT_THAT(shown.promise,
              AllOf(HasSubstr("kept: done after 81.0 s of 300"), HasSubstr("219.0 s early")));
  EXPECT_NEAR(shown.promise_left_s.value_or(0), 219, 0.1);
  EXPECT_EQ(shown.forecast.by, "its user");
}

TEST_F(SharePromisesTest, WhoWasLateTellsByHowMuch) {
  const auto shown = after(accept(promised("a", 900, 60, 300)), 330, success());
  EXPECT_THAT(shown.promise, AllOf(HasSubstr("broken"), HasSubstr("30.0 s late")));
  EXPECT_NEAR(shown.promise_left_s.value_or(0), -30, 0.1);
}

// Its node had nobody to tell it to for a while.
TEST_F(SharePromisesTest, WhoWasDoneInTimeAndToldLateKeptIt) {
  auto late = success();
  late.ago_ms = 249'000;
  const auto shown = after(accept(promised("a", 900, 60, 300)), 330, late);
  EXPECT_THAT(shown.promise,
              AllOf(HasSubstr("kept: done after 81.0 s of 300"), HasSubstr("219.0 s early")));
}

TEST_F(SharePromisesTest, NoNodeTellsOfAnEndThatWasBeforeTheTask) {
  auto wrong = success();
  wrong.ago_ms = UINT64_MAX;
  const auto shown = after(accept(promised("a", 900, 60, 300)), 12, wrong);
  EXPECT_THAT(shown.promise, HasSubstr("kept: done after 0.0 s of 300"));
}

TEST_F(SharePromisesTest, WhoFailedBrokeIt) {
  const auto id = accept(promised("a", 900, 60, 300));
  const auto shown = after(id, 12, failure(1));
  EXPECT_THAT(shown.promise, HasSubstr("broken: the task failed after 12.0 s of 300"));
  restart_coordinator();
  EXPECT_THAT(ended(id).promise, HasSubstr("broken: the task failed after 12.0 s of 300"));
}

TEST_F(SharePromisesTest, WhoWasCancelledVoidsIt) {
  const auto id = accept(promised("a", 900, 60, 300));
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  pass(1);
  lifecycle_->cancel(id, nullptr);
  flush();
  EXPECT_THAT(ended(id).promise, HasSubstr("void"));
  EXPECT_THAT(ended(id).forecast.by, HasSubstr("never"));
}

TEST_F(SharePromisesTest, WhoIsCancelledTooLateHasBrokenIt) {
  const auto id = accept(promised("a", 900, 60, 300));
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  pass(301);
  lifecycle_->cancel(id, nullptr);
  flush();
  EXPECT_THAT(ended(id).promise, HasSubstr("broken: the task was cancelled after 301.0 s of 300"));
}

TEST_F(SharePromisesTest, WhatWasOnTrialAtTheEndWasNotMade) {
  auto spec = promised("a", 900, 100, 120);
  spec.share.promise_on_trial = true;
  const auto shown = after(accept(spec), 2, success());
  EXPECT_THAT(shown.promise, HasSubstr("not made"));
  EXPECT_FALSE(shown.promise_left_s);
}

TEST_F(SharePromisesTest, WhoAskedForNoneTellsOfNone) {
  const auto shown = after(accept(shared("a", 400)), 2, success());
  EXPECT_EQ(shown.promise, "");
  EXPECT_EQ(shown.given.milli, 400u);
}

TEST_F(SharePromisesTest, ThoseThatComeAtTheSameTimeAreCountedWithEachOther) {
  hold_disk();
  std::vector<Result<SubmitReceipt>> answers;
  for (int i = 0; i < 4; ++i)
    intake_->submit({"tester", "at once " + std::to_string(i)}, {promised("p", 1000, 20, 45)},
                    [&](auto answer) { answers.push_back(std::move(answer)); });
  EXPECT_EQ(answers.size(), 3U) << "one is on its way to the disk, the others are refused";
  release_disk();
  ASSERT_EQ(answers.size(), 4U);
  EXPECT_EQ(std::count_if(answers.begin(), answers.end(), [](const auto& one) { return !!one; }),
            1);
}

TEST_F(SharePromisesTest, NoneIsMadeToATaskThatMayHaveToWaitForOthers) {
  auto first = shared("first", 100);
  auto second = promised("second", 100, 2, 10);
  second.after = {"first"};
  const auto together = submit({first, second});
  ASSERT_FALSE(together);
  EXPECT_THAT(together.error().message,
              AllOf(HasSubstr("'second'"), HasSubstr("after other tasks"), HasSubstr("on trial")));
  second.share.promise_on_trial = true;
  EXPECT_TRUE(submit({first, second}));
  add_dataset("d", 4096, "n1");
  auto writer = shared("writer", 100);
  writer.datasets = {{.dataset = "d", .write = true}};
  const auto writes = accept(writer);
  auto next = promised("next", 100, 2, 600);
  next.datasets = writer.datasets;
  EXPECT_THAT(refusal(next), HasSubstr(fmt::format("task {} writes dataset 'd'", writes)));
}

TEST_F(SharePromisesTest, NoneIsMadeBeyondATimeLimit) {
  auto spec = promised("limited", 100, 60, 600);
  spec.time_limit_ms = 61'000;
  EXPECT_THAT(refusal(spec), AllOf(HasSubstr("may run for"), HasSubstr("its time limit is 61")));
  spec.time_limit_ms = 3'600'000;
  EXPECT_TRUE(submit({spec}));
}

// Nobody knows how long the one that waits takes, but it begins after whoever has a promise.
TEST_F(SharePromisesTest, WhoWaitsWithoutOneDoesNotStandInTheWay) {
  accept(promised("first", 1000, 20, 60));
  pump();
  const auto waits = accept(sensitive("waits", 1000)),
             asks = accept(promised("asks", 1000, 20, 90));
  pump();
  ASSERT_TRUE(exit("n1", {1, 1}, success()));
  pump();
  EXPECT_EQ(task(waits).state, TaskState::kQueued);
  EXPECT_EQ(task(asks).state, TaskState::kRunning) << task(asks).reason;
}

TEST_F(SharePromisesTest, ABrokenOneDoesNotGoBeforeOneThatCanBeKept) {
  const auto broken = accept(promised("broken", 1000, 20, 60));
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  pass(100);
  state_->registry.set_order("n1", {NodeOrder::Kind::kNone});
  const auto asks = accept(promised("asks", 1000, 20, 60));
  pump();
  EXPECT_EQ(task(broken).state, TaskState::kQueued);
  EXPECT_EQ(task(asks).state, TaskState::kRunning) << task(asks).reason;
}

TEST_F(SharePromisesTest, WhoCanRunNowhereStandsInNobodysWay) {
  auto nowhere = on_gpu(promised("", 100, 60, 600'000));
  nowhere.share.promise_on_trial = true;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(submit(std::vector<TaskSpec>(100, nowhere)));
  EXPECT_TRUE(submit({promised("p", 1000, 20, 60)}));
}

TEST_F(SharePromisesTest, BesideManyThatWaitNoneIsMade) {
  ASSERT_TRUE(submit(std::vector<TaskSpec>(129, sensitive("", 1000)))) << "without promises";
  const auto some = std::vector<TaskSpec>(65, promised("", 1000, 1, 10'000'000));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(submit(some));
  EXPECT_THAT(refusal(promised("p", 1000, 1, 1000)), HasSubstr("while more than 128 wait"));
  EXPECT_TRUE(submit({shared("b", 300)}));
  const auto too_many = submit(std::vector<TaskSpec>(200, promised("", 1000, 1, 10'000'000)));
  ASSERT_FALSE(too_many);
  EXPECT_THAT(too_many.error().message, HasSubstr("200 tasks with promises"));
}

}  // namespace
}  // namespace tierpilot::testing
