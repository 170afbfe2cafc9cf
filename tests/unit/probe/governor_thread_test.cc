#include "daemon/probe/passive/governor_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

namespace tierpilot {
namespace {

using std::chrono::steady_clock;

class CountedPrograms final : public GovernedPrograms {
 public:
  uint64_t calls() const override { return calls_; }
  Status attach() override {
    EXPECT_FALSE(attached_.exchange(true));
    ++attaches;
    if (!refusing) return {};
    attached_ = false;
    return fail(ErrorCode::kDenied, "attaching to function migrate_pages: Permission denied");
  }
  void detach() override {
    EXPECT_TRUE(attached_.exchange(false));
    ++detaches;
  }

  void call(uint64_t times) { calls_ += times; }
  bool attached() const { return attached_; }

  std::atomic<int> attaches = 0, detaches = 0;
  std::atomic<bool> refusing = false;

 private:
  std::atomic<uint64_t> calls_ = 0;
  std::atomic<bool> attached_ = true;
};

bool soon(const std::function<bool()>& true_now) {
  const auto end = steady_clock::now() + std::chrono::seconds(20);
  while (!true_now() && steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return true_now();
}

// A call takes a millisecond, and half of the time may be spent on them.
constexpr CostGovernor::Options kOptions{.cpu_share = 0.5, .call_ns = 1'000'000};

TEST(GovernorThread, DetachesWhatIsTooDearAndAttachesItAgain) {
  CountedPrograms programs;
  const GovernorThread governor(programs, kOptions);
  EXPECT_EQ(governor.attached_share(), 1);
  programs.call(1200);
  ASSERT_TRUE(soon([&] { return programs.detaches == 1; }));
  ASSERT_TRUE(soon([&] { return programs.attaches == 1; }));
  const double share = governor.attached_share();
  EXPECT_GT(share, 0);
  EXPECT_LT(share, 1);
}

TEST(GovernorThread, LeavesProgramsThatAreNotCalledAlone) {
  CountedPrograms programs;
  const GovernorThread governor(programs, kOptions);
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  EXPECT_EQ(programs.detaches, 0);
  EXPECT_EQ(governor.attached_share(), 1);
}

TEST(GovernorThread, TriesAgainWhereTheKernelRefuses) {
  CountedPrograms programs;
  const GovernorThread governor(programs, kOptions);
  programs.refusing = true;
  programs.call(1200);
  ASSERT_TRUE(soon([&] { return programs.attaches == 1; }));
  EXPECT_LT(governor.attached_share(), 1);
  programs.refusing = false;
  ASSERT_TRUE(soon([&] { return programs.attached(); }));
}

TEST(GovernorThread, EndsWhileItWaits) {
  CountedPrograms programs;
  std::optional<GovernorThread> governor(std::in_place, programs, kOptions);
  programs.call(1'000'000);
  ASSERT_TRUE(soon([&] { return programs.detaches == 1; }));
  governor.reset();
  EXPECT_EQ(programs.attaches, 0) << "it was to wait for half an hour";
}

}  // namespace
}  // namespace tierpilot
