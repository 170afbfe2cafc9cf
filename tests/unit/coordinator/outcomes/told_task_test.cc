// What is told of tasks while the disk is behind.
#include "coordinator/core/outcomes/told_task.h"

#include <gmock/gmock.h>

#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class ToldTask : public CoreTest {
 protected:
  Task told(uint64_t id) {
    const auto told = told_task(*state_, id);
    EXPECT_TRUE(told && *told);
    return **told;
  }
  Task told_in_list(uint64_t id) { return told_task(*state_, *stored(id)); }
};

TEST_F(ToldTask, HasNotEndedBeforeItsEndIsOnDisk) {
  join("n1");
  ASSERT_TRUE(submit({spec()}));
  const auto attempt = assign(1, "n1");
  lifecycle_->started("n1", attempt, 1, {});
  flush();
  hold_disk();
  bool durable = false;
  lifecycle_->exited("n1", attempt, success(), [&](const Status&) { durable = true; });
  ASSERT_EQ(state_->tasks.find(1)->state, TaskState::kSucceeded);
  for (const auto& task : {told(1), told_in_list(1)}) {
    EXPECT_EQ(task.state, TaskState::kRunning);
    EXPECT_FALSE(task.exit);
    EXPECT_EQ(task.finished_ms, 0);
    EXPECT_THAT(task.reason, HasSubstr("not on disk"));
  }
  release_disk();
  ASSERT_TRUE(durable);
  for (const auto& task : {told(1), told_in_list(1)}) {
    EXPECT_EQ(task.state, TaskState::kSucceeded);
    EXPECT_TRUE(task.exit);
    EXPECT_EQ(task.reason, "");
  }
}

TEST_F(ToldTask, HasEndedOnceThatIsOnDiskAndNobodyWasCalled) {
  join("n1");
  ASSERT_TRUE(submit({spec()}));
  flush();
  lifecycle_->exited("n1", assign(1, "n1"), success(), nullptr);
  ASSERT_TRUE(posts_.wait());
  for (int i = 0; i < 2'000 && !is_ended(stored(1)->state); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_NE(state_->tasks.find(1), nullptr);
  EXPECT_EQ(told(1).state, TaskState::kSucceeded);
}

TEST_F(ToldTask, AStartIsToldBeforeItIsOnDisk) {
  join("n1");
  ASSERT_TRUE(submit({spec()}));
  const auto attempt = assign(1, "n1");
  flush();
  hold_disk();
  lifecycle_->started("n1", attempt, 1, {});
  EXPECT_EQ(told(1).state, TaskState::kRunning);
  // Nor is what was told undone by an end that is not on disk yet.
  const auto started_ms = told(1).started_ms;
  lifecycle_->exited("n1", attempt, success(), nullptr);
  EXPECT_EQ(told(1).state, TaskState::kRunning);
  EXPECT_EQ(told(1).started_ms, started_ms);
  release_disk();
}

TEST_F(ToldTask, ThoseThatFailWithAnotherWaitUntilThatIsOnDisk) {
  join("n1");
  ASSERT_TRUE(submit({spec("a"), spec("b", {"a"})}));
  flush();
  hold_disk();
  lifecycle_->cancel(1, nullptr);
  ASSERT_EQ(state_->tasks.find(2)->state, TaskState::kFailed);
  EXPECT_EQ(told(1).state, TaskState::kQueued);
  EXPECT_EQ(told(2).state, TaskState::kWaiting);
  release_disk();
  EXPECT_EQ(told(1).state, TaskState::kCancelled);
  EXPECT_EQ(told(2).state, TaskState::kFailed);
}

TEST_F(ToldTask, WhoAsksForACancelAgainHearsOfItOnceItIsOnDisk) {
  ASSERT_TRUE(submit({spec()}));
  flush();
  hold_disk();
  std::vector<std::string> answered;
  for (const auto* who : {"first", "second"})
    lifecycle_->cancel(1, [&, who](const Status& status) {
      EXPECT_TRUE(status);
      EXPECT_EQ(told(1).state, TaskState::kCancelled);
      answered.push_back(who);
    });
  EXPECT_THAT(answered, ::testing::IsEmpty());
  release_disk();
  EXPECT_THAT(answered, ::testing::ElementsAre("first", "second"));
  EXPECT_EQ(state_->tasks.find(1), nullptr);
}

TEST_F(ToldTask, NothingOfOneThatThereIsNot) {
  const auto none = told_task(*state_, 7);
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

}  // namespace
}  // namespace tierpilot::testing
