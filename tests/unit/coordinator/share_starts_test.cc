// Who starts takes no unit that an earlier promise counts on.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

class ShareStartsTest : public ShareKeeperTest {
 protected:
  TaskSpec of_memory(TaskSpec spec, uint64_t mib) {
    spec.memory_bytes = mib << 20;
    return spec;
  }
  void seconds(int count) {
    for (int i = 0; i < count; ++i) pass(1);
  }
  TaskState state_of(uint64_t id) { return state_->tasks.find(id)->state; }
};

TEST_F(ShareStartsTest, OneThatComesLaterDoesNotTakeWhatAPromiseWaitsFor) {
  const auto first = accept(of_memory(promised("first", 300, 60, 120), 500));
  pump();
  const auto waits = accept(of_memory(promised("waits", 300, 60, 260), 800));
  pump();
  ASSERT_EQ(state_of(waits), TaskState::kQueued);
  const auto later = accept(of_memory(sensitive("later", 200), 400));
  pump();
  EXPECT_EQ(state_of(later), TaskState::kQueued);
  EXPECT_THAT(task(later).reason, ::testing::HasSubstr("promise"));
  seconds(90);
  EXPECT_TRUE(exit("n1", {first, 1}, success()));
  pump();
  EXPECT_EQ(state_of(waits), TaskState::kRunning);
}

TEST_F(ShareStartsTest, ALaterPromiseIsKeptWhereItBreaksNone) {
  join_sharing("n2", 1);
  const auto first = accept(of_memory(promised("first", 500, 60, 120), 500));
  pump();
  accept(of_memory(promised("beside", 300, 600, 3000), 600));
  pump();
  const auto waits = accept(of_memory(promised("waits", 300, 60, 260), 800));
  pump();
  ASSERT_EQ(state_of(waits), TaskState::kQueued);
  const auto later = accept(of_memory(promised("later", 100, 300, 900), 300));
  pump();
  EXPECT_EQ(state_of(later), TaskState::kRunning) << task(later).reason;
  EXPECT_NE(state_->tasks.find(later)->node, state_->tasks.find(first)->node);
  seconds(90);
  EXPECT_TRUE(exit(state_->tasks.find(first)->node, {first, 1}, success()));
  pump();
  EXPECT_EQ(state_of(waits), TaskState::kRunning);
}

TEST_F(ShareStartsTest, OneThatIsDoneBeforeTheUnitIsNeededStarts) {
  accept(of_memory(promised("first", 300, 60, 120), 500));
  pump();
  const auto waits = accept(of_memory(promised("waits", 300, 60, 2000), 800));
  pump();
  ASSERT_EQ(state_of(waits), TaskState::kQueued);
  auto later = of_memory(sensitive("later", 200), 400);
  later.share.estimate_ms = 20'000;
  const auto id = accept(later);
  pump();
  EXPECT_EQ(state_of(id), TaskState::kRunning) << task(id).reason;
}

class ShareLearningTest : public ShareKeeperTest {
 protected:
  // At three tenths of a core; told of so much later.
  void run_for(int run_s, int told_after_s = 0) {
    const auto id = accept(shared("tune", 1000));
    pump();
    JobPoint used{.attempt = 1, .milli_units = 1000};
    for (int s = 1; s <= run_s; ++s) {
      pass(1);
      used.cpu_ns = static_cast<uint64_t>(s) * 300'000'000;
      used.at_ms = clock_.wall_ms();
      keeper_->reported(task(id), used);
    }
    for (int s = 0; s < told_after_s; ++s) pass(1);
    auto ended = success();
    ended.ago_ms = static_cast<uint64_t>(told_after_s) * 1000;
    EXPECT_TRUE(exit("n1", {id, 1}, ended));
  }
  bool is_made(int promise_s) {
    auto spec = shared("tune", 0);
    spec.share.latency_sensitive = true;
    spec.share.promise_ms = promise_s * 1000;
    return submit({spec}).has_value();
  }
};

TEST_F(ShareLearningTest, ARunWhoseEndIsToldLateWasNoLonger) {
  for (int i = 0; i < 3; ++i) run_for(10);
  run_for(10, 100);
  EXPECT_TRUE(is_made(100));
}

TEST_F(ShareLearningTest, OneLongRunIsForgottenAfterManyShortOnes) {
  for (int i = 0; i < 3; ++i) run_for(10);
  run_for(300);
  EXPECT_FALSE(is_made(100));
  for (int i = 0; i < 40; ++i) run_for(10);
  EXPECT_TRUE(is_made(100));
}

}  // namespace
}  // namespace tierpilot::testing
