// Attempts with parts of GPUs, and what becomes of them while the driver says nothing.
#include "daemon/agent/gpus/gpu_shares.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

namespace tierpilot::agent {
namespace {

constexpr AttemptId kFirst{1, 1}, kSecond{2, 1};

class GpuSharesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Executor::start({.task_root = ""});
    ASSERT_TRUE(started) << started.error().message;
    executor_ = std::move(*started);
    const std::vector<GpuShares::Unit> units{{"GPU-a", "/mps/GPU-a", 100}, {"GPU-turns", "", 100}};
    shares_ = std::make_unique<GpuShares>(
        units, loop_, *executor_, clock_,
        GpuShares::Hooks{.end = [this](auto attempt, const auto&) { told_to_end_.insert(attempt); },
                         .unhealthy = [](const auto&, const auto&) {},
                         .ask = [this](const auto&) { return ++asked_; },
                         .idle = [](const auto&, bool) {}});
    for (const auto attempt : {kFirst, kSecond})
      shares_->launched(attempt, "GPU-a", {.milli = 500});
  }
  void pass_s(int64_t s) {
    clock_.advance_ns(s * 1'000'000'000);
    loop_.after_ms(1'500).wait(loop_.wait_scope());
  }
  void looked(uint64_t answers) {
    GpuLook look;
    look.gpu = "GPU-a";
    look.answers = answers;
    shares_->looked(look);
  }

  // MPS was asked, and said this.
  void mps_said(bool faulted, bool gone) {
    clock_.advance_ns(1'000'000);
    GpuLook look;
    look.gpu = "GPU-a";
    look.mps_asked_ns = clock_.boot_ns();
    look.mps_faulted = faulted;
    look.mps_gone = gone;
    clock_.advance_ns(1'000'000);
    shares_->looked(look);
  }

  std::set<AttemptId> told_to_end_;
  ManualClock clock_;
  std::unique_ptr<Executor> executor_;
  EventLoop loop_;
  std::unique_ptr<GpuShares> shares_;
  uint64_t asked_ = 0;
  int first_ = 0, second_ = 0;
};

TEST_F(GpuSharesTest, ABadEndWaitsForTheNextLook) {
  shares_->settle(kFirst, [this] { ++first_; });
  looked(0);
  EXPECT_EQ(first_, 0) << "that look began before";
  looked(1);
  EXPECT_EQ(first_, 1);
  looked(2);
  EXPECT_EQ(first_, 1);
}

// The driver may hang.
TEST_F(GpuSharesTest, ABadEndWaitsForALookOnlySoLong) {
  shares_->settle(kFirst, [this] { ++first_; });
  pass_s(6);
  shares_->settle(kSecond, [this] { ++second_; });
  EXPECT_EQ(first_, 0);
  pass_s(6);
  EXPECT_EQ(first_, 1);
  EXPECT_EQ(second_, 0) << "it has not waited so long";
  looked(2);
  EXPECT_EQ(first_, 1) << "once";
  EXPECT_EQ(second_, 1);
}

TEST_F(GpuSharesTest, WhoWaitsForALookIsForgottenWithTheRest) {
  shares_->settle(kFirst, [this] { ++first_; });
  shares_.reset();
  pass_s(20);
  EXPECT_EQ(first_, 0);
}

TEST_F(GpuSharesTest, ABadEndInTurnsWaitsForALookToo) {
  constexpr AttemptId kThird{3, 1};
  shares_->launched(kThird, "GPU-turns", {.milli = 500});
  shares_->settle(kThird, [this] { ++first_; });
  EXPECT_EQ(first_, 0) << "its GPU may be lost";
  GpuLook look;
  look.gpu = "GPU-turns";
  look.answers = 1;
  look.lost = true;
  shares_->looked(look);
  EXPECT_EQ(first_, 1);
  const auto end = shares_->ended(kThird);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->node_fault);
  EXPECT_TRUE(told_to_end_.contains(kThird));
  EXPECT_FALSE(told_to_end_.contains(kFirst)) << "on another GPU";
}

TEST_F(GpuSharesTest, AFaultIsNobodysOwnWhereSomebodyElseHasJustLeft) {
  mps_said(false, false);
  EXPECT_FALSE(shares_->ended(kFirst));
  mps_said(true, false);
  const auto end = shares_->ended(kSecond);
  ASSERT_TRUE(end) << "the first one may have done it, and ended";
  EXPECT_TRUE(end->node_fault);
}

TEST_F(GpuSharesTest, AFaultOfOneThatWasAloneIsItsOwn) {
  EXPECT_FALSE(shares_->ended(kFirst));
  mps_said(false, false);
  mps_said(true, false);
  EXPECT_FALSE(shares_->ended(kSecond));
}

TEST(GpuEnd, IsNoneOfWhatItsTimeLimitOrItsUserEnded) {
  const GpuEnd lost{TaskEnd::kLost, "GPU GPU-a: device lost", true};
  EXPECT_TRUE(lost.explains(TaskEnd::kExited, ""));
  EXPECT_TRUE(lost.explains(TaskEnd::kSignalled, ""));
  EXPECT_TRUE(lost.explains(TaskEnd::kCancelled, lost.reason)) << "it was ended for that";
  EXPECT_FALSE(lost.explains(TaskEnd::kCancelled, "cancelled by bob"));
  EXPECT_FALSE(lost.explains(TaskEnd::kTimedOut, ""));
  EXPECT_FALSE(lost.explains(TaskEnd::kMemoryLimit, ""));
}

TEST_F(GpuSharesTest, AServerThatHasGoneBeforeAnybodyComputedIsNoFault) {
  mps_said(false, true);
  EXPECT_TRUE(told_to_end_.empty());
}

}  // namespace
}  // namespace tierpilot::agent
