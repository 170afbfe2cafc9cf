// Promises that are decided while the job runs.
#include "coordinator/core/sharing/promise_words.h"
#include "coordinator/store/records.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class ShareTrialsTest : public ShareKeeperTest {
 protected:
  // Its user says 100 s, which may be 150.
  static TaskSpec on_trial(int64_t promise_s) {
    auto task = promised("tune", 900, 100, promise_s);
    task.share.promise_on_trial = true;
    return task;
  }
  // `seconds` pass, in each of which it does so much of its run.
  void run(uint64_t id, int seconds, double part_each_s) {
    for (int s = 0; s < seconds; ++s) {
      run_on(id, 1, part_each_s);
      flush();
    }
  }
  // Whatever the disk does.
  void run_on(uint64_t id, int seconds, double part_each_s) {
    constexpr uint64_t kIterations = 1'000'000;
    for (int s = 0; s < seconds; ++s) {
      tick(1);
      done_ += part_each_s;
      JobPoint point{.attempt = task(id).attempt};
      point.iteration = static_cast<uint64_t>(done_ * kIterations);
      point.iterations = kIterations;
      keeper_->reported(task(id), point);
    }
  }
  std::string promise(uint64_t id) { return keeper_->share_of(id)->promise; }

  double done_ = 0;
};

TEST_F(ShareTrialsTest, WhatCanBePromisedAtOnceIsNotOnTrial) {
  const auto id = accept(on_trial(200));
  EXPECT_EQ(promise(id), "made");
  EXPECT_FALSE(task(id).spec.share.promise_on_trial);
}

TEST_F(ShareTrialsTest, WhatIsTooUncertainIsRefusedWithoutATrialAndSaysSo) {
  auto spec = on_trial(120);
  spec.share.promise_on_trial = false;
  const auto refused = submit({spec});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("or let it be on trial"));
  const auto hopeless = submit({on_trial(80)});
  ASSERT_FALSE(hopeless);
  EXPECT_THAT(hopeless.error().message, HasSubstr("cannot be made"));
  EXPECT_THAT(hopeless.error().message, ::testing::Not(HasSubstr("let it be on trial")));
  EXPECT_THAT(hopeless.error().message, ::testing::ContainsRegex("on trial it may be 1?[0-9]+ s"));
}

// Nobody knows when others give room for swapping back, and once it runs it has it.
TEST_F(ShareTrialsTest, ThatOfATaskWithRoomForSwappingIsAlwaysOnTrial) {
  join_with_swap_room("n2", 2 << 20);
  auto spec = on_trial(200);
  spec.swap_room_bytes = 1 << 20;
  auto firm = spec;
  firm.share.promise_on_trial = false;
  const auto refused = submit({firm});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("on trial only"));
  const auto id = accept(spec);
  EXPECT_EQ(promise(id), "on trial") << "though there is time for it";
  pump();
  ASSERT_EQ(task(id).node, "n2");
  run(id, 8, 0.0105);
  EXPECT_EQ(promise(id), "made on trial");
}

TEST_F(ShareTrialsTest, ItIsMadeOnceThePaceTellsThatItIsKept) {
  const auto id = accept(on_trial(120));
  EXPECT_EQ(promise(id), "on trial");
  pump();
  ASSERT_EQ(task(id).state, TaskState::kRunning);
  EXPECT_EQ(promise(id), "on trial");
  run(id, 8, 0.0105);
  EXPECT_EQ(promise(id), "made on trial");
  EXPECT_TRUE(keeper_->share_of(id)->promise_left_s);
}

TEST_F(ShareTrialsTest, ItIsNotMadeWhenItTakesTooLong) {
  const auto id = accept(on_trial(120));
  pump();
  run(id, 8, 0.006);
  EXPECT_THAT(promise(id), HasSubstr("not made"));
  EXPECT_FALSE(keeper_->share_of(id)->promise_left_s);
  EXPECT_EQ(task(id).state, TaskState::kRunning) << "it goes on";
  run(id, 8, 0.05);
  EXPECT_THAT(promise(id), HasSubstr("not made")) << "that is decided once";
}

TEST_F(ShareTrialsTest, ItIsNotMadeWhenItTellsNoIterations) {
  const auto id = accept(on_trial(120));
  pump();
  pass(24);
  EXPECT_EQ(promise(id), "on trial");
  pass(6);
  EXPECT_THAT(promise(id), HasSubstr("not made"));
}

// Others are ahead of it until its promise is hopeless.
TEST_F(ShareTrialsTest, ItIsNotMadeWhenItWaitsTooLong) {
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  const auto id = accept(on_trial(120));
  pass(30);
  state_->registry.set_order("n1", {NodeOrder::Kind::kNone});
  pump();
  ASSERT_EQ(task(id).state, TaskState::kRunning);
  EXPECT_THAT(promise(id), HasSubstr("not made"));
}

TEST_F(ShareTrialsTest, WhatBecameOfItIsToldAlikeOnceItIsCancelled) {
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  const auto sooner = accept(on_trial(120));
  lifecycle_->cancel(sooner, nullptr);
  flush();
  EXPECT_THAT(promise_words(*stored(sooner), clock_.wall_ms()),
              HasSubstr("ended before it was decided"));
  const auto id = accept(on_trial(120));
  pass(130);
  const auto words = promise(id);
  EXPECT_THAT(words, HasSubstr("its time was over"));
  lifecycle_->cancel(id, nullptr);
  flush();
  EXPECT_EQ(promise_words(*stored(id), clock_.wall_ms()), words);
}

// It may have been told so, and begin after all: its node may be back with it.
TEST_F(ShareTrialsTest, WhoWaitedTooLongHasNoPromiseOnceThatIsOnDisk) {
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  const auto id = accept(on_trial(120));
  hold_disk();
  tick(130);
  EXPECT_EQ(promise(id), "on trial");
  release_disk();
  const auto words = promise(id);
  EXPECT_THAT(words, HasSubstr("its time was over"));
  restart_coordinator();
  EXPECT_EQ(promise(id), words);
  EXPECT_EQ(stored(id)->share->trial_end, TrialEnd::kNotMade);
  node_ = join_sharing("n1", 1);
  state_->registry.set_order("n1", {NodeOrder::Kind::kNone});
  pump();
  ASSERT_EQ(task(id).state, TaskState::kRunning);
  EXPECT_THAT(promise(id), HasSubstr("not made"));
}

// What was decided stays so, and what was not is decided by the next coordinator.
TEST_F(ShareTrialsTest, ARestartOfTheCoordinatorChangesNothing) {
  const auto again = [&](uint64_t id) {
    restart_coordinator();
    node_ = join_sharing("n1", 1, {{id, 1}});
  };
  const auto id = accept(on_trial(120));
  pump();
  again(id);
  EXPECT_EQ(promise(id), "on trial");
  run(id, 8, 0.0105);
  EXPECT_EQ(promise(id), "made on trial");
  again(id);
  EXPECT_EQ(promise(id), "made on trial");
}

// A power cut would undo it.
TEST_F(ShareTrialsTest, ItsEndIsToldOnceItIsOnDisk) {
  for (const double part_each_s : {0.0105, 0.006}) {
    done_ = 0;
    const auto id = accept(on_trial(120));
    pump();
    ASSERT_EQ(task(id).state, TaskState::kRunning);
    hold_disk();
    run_on(id, 8, part_each_s);
    EXPECT_NE(task(id).share->trial_end, TrialEnd::kNone) << "it is decided";
    EXPECT_EQ(promise(id), "on trial");
    EXPECT_TRUE(keeper_->share_of(id)->promise_left_s);
    release_disk();
    EXPECT_NE(promise(id), "on trial");
    EXPECT_TRUE(exit("n1", {id, 1}, success()));
  }
}

TEST_F(ShareTrialsTest, ATrialWithoutAPromiseIsRefused) {
  auto spec = on_trial(120);
  spec.share.promise_ms = 0;
  const auto refused = submit({spec});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("on trial"));
}

}  // namespace
}  // namespace tierpilot::testing
