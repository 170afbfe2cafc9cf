// Attempts with parts of GPUs, and what becomes of them while the driver says nothing.
#include "daemon/agent/gpus/gpu_shares.h"

#include <gtest/gtest.h>

namespace tierpilot::agent {
namespace {

constexpr AttemptId kFirst{1, 1}, kSecond{2, 1};

class GpuSharesTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Executor::start({.task_root = ""});
    ASSERT_TRUE(started) << started.error().message;
    executor_ = std::move(*started);
    const std::vector<GpuShares::Unit> units{{"GPU-a", "/mps/GPU-a", 100}};
    shares_ = std::make_unique<GpuShares>(
        units, loop_, *executor_, clock_,
        GpuShares::Hooks{.end = [](auto, const auto&) {},
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

}  // namespace
}  // namespace tierpilot::agent
