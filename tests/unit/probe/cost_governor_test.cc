#include "daemon/probe/passive/cost_governor.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

using Step = CostGovernor::Step;
constexpr int64_t kMs = 1'000'000, kS = 1000 * kMs;

// A machine whose programs make calls at a rate, watched by programs of known cost.
class Machine {
 public:
  explicit Machine(const CostGovernor::Options& options, int64_t attach_ns = 0,
                   int64_t detach_ns = 0)
      : options_(options), attach_ns_(attach_ns), detach_ns_(detach_ns), governor_(options, 0) {}

  void run(int64_t for_ns, double calls_per_s) {
    const int64_t end_ns = now_ns_ + for_ns;
    while (now_ns_ < end_ns) {
      const auto decision = governor_.decide(now_ns_, static_cast<uint64_t>(calls_));
      if (decision.step == Step::kStay)
        pass(std::min(decision.wait_ns, end_ns - now_ns_), calls_per_s);
      else
        toggle(decision.step == Step::kAttach);
    }
  }

  bool attached() const { return attached_; }
  int windows() const { return windows_; }
  double cost_share() const { return spent_ns() / static_cast<double>(now_ns_); }
  double spent_ns() const { return toggled_ns_ + calls_ * static_cast<double>(options_.call_ns); }
  double attached_share() const {
    return static_cast<double>(attached_ns_) / static_cast<double>(now_ns_);
  }

 private:
  void pass(int64_t ns, double calls_per_s) {
    EXPECT_GT(ns, 0) << "it would never come to rest";
    now_ns_ += ns;
    if (!attached_) return;
    attached_ns_ += ns;
    calls_ += calls_per_s * static_cast<double>(ns) / 1e9;
  }
  void toggle(bool attach) {
    EXPECT_NE(attach, attached_);
    attached_ = attach;
    windows_ += attach;
    const int64_t cost_ns = attach ? attach_ns_ : detach_ns_;
    toggled_ns_ += static_cast<double>(cost_ns);
    now_ns_ += cost_ns;
    governor_.toggled(attach, now_ns_, cost_ns);
  }

  CostGovernor::Options options_;
  int64_t attach_ns_, detach_ns_;
  CostGovernor governor_;
  int64_t now_ns_ = 0, attached_ns_ = 0;
  double calls_ = 0, toggled_ns_ = 0;
  bool attached_ = true;
  int windows_ = 0;
};

TEST(CostGovernor, ProgramsThatCostLessThanTheShareStayAttached) {
  Machine machine({.cpu_share = 0.005, .call_ns = 1000}, 8 * kMs, 8 * kMs);
  machine.run(600 * kS, 4000);
  EXPECT_EQ(machine.attached_share(), 1);
  EXPECT_NEAR(machine.cost_share(), 0.004, 0.0001);
}

TEST(CostGovernor, DearCallsAreWatchedInWindowsWithinTheShare) {
  Machine machine({.cpu_share = 0.005, .call_ns = 1000}, 8 * kMs, 8 * kMs);
  machine.run(600 * kS, 64'000);
  EXPECT_LE(machine.cost_share(), 0.0051);
  EXPECT_GE(machine.cost_share(), 0.0045) << "and uses it";
  EXPECT_GE(machine.windows(), 50);
  EXPECT_NEAR(machine.attached_share(), 0.0025 / 0.064, 0.005) << "half of the share is for calls";
}

TEST(CostGovernor, WindowsThatCostNothingToBeginLeaveTheShareToCalls) {
  Machine machine({.cpu_share = 0.005, .call_ns = 1000});
  machine.run(600 * kS, 64'000);
  EXPECT_NEAR(machine.cost_share(), 0.005, 0.0002);
  EXPECT_NEAR(machine.attached_share(), 0.005 / 0.064, 0.005);
  EXPECT_LE(machine.windows(), 600) << "and do not come faster than one a second";
}

TEST(CostGovernor, AShareOfABusyMachineIsKeptThoughItsCPUsOverdrawIt) {
  Machine machine({.cpu_share = 0.005, .call_ns = 1000}, 8 * kMs, 8 * kMs);
  machine.run(600 * kS, 64 * 64'000);
  EXPECT_LE(machine.cost_share(), 0.0055);
  EXPECT_GE(machine.windows(), 10);
}

TEST(CostGovernor, WhenCallsGetFewTheProgramsStay) {
  Machine machine({.cpu_share = 0.005, .call_ns = 1000}, 8 * kMs, 8 * kMs);
  machine.run(60 * kS, 64'000);
  machine.run(20 * kS, 100);
  const int windows = machine.windows();
  EXPECT_TRUE(machine.attached());
  machine.run(600 * kS, 100);
  EXPECT_EQ(machine.windows(), windows);
}

TEST(CostGovernor, ALongRestSavesUpForOneWindowOnly) {
  Machine machine({.cpu_share = 0.005, .call_ns = 1000}, 8 * kMs, 8 * kMs);
  machine.run(60 * kS, 64'000);
  machine.run(3600 * kS, 0);
  const double before_ns = machine.spent_ns();
  machine.run(10 * kS, 64'000);
  EXPECT_LE(machine.spent_ns() - before_ns, 0.005 * 10e9 + 2 * 16e6);
}

TEST(CostGovernor, ATinyShareMakesForNoEndlessWait) {
  CostGovernor governor({.cpu_share = 1e-300, .call_ns = 1000}, 0);
  ASSERT_EQ(governor.decide(kS, UINT64_MAX / 2).step, Step::kDetach);
  governor.toggled(false, kS, kMs);
  const auto decision = governor.decide(2 * kS, UINT64_MAX / 2);
  EXPECT_EQ(decision.step, Step::kStay);
  EXPECT_GT(decision.wait_ns, 0);
  EXPECT_LE(decision.wait_ns, 3600 * kS + 1);
}

TEST(CostGovernor, AnAttachThatFailsIsTriedAgainLater) {
  CostGovernor governor({.cpu_share = 0.005, .call_ns = 1000}, 0);
  ASSERT_EQ(governor.decide(kS, 1'000'000).step, Step::kDetach);
  governor.toggled(false, kS, kMs);
  ASSERT_EQ(governor.decide(3600 * kS, 1'000'000).step, Step::kAttach);
  governor.attach_failed();
  const auto decision = governor.decide(3600 * kS, 1'000'000);
  EXPECT_EQ(decision.step, Step::kStay);
  EXPECT_GE(decision.wait_ns, kS * 9 / 10);
}

}  // namespace
}  // namespace tierpilot
