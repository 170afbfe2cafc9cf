// Programs that saturate a made GPU and such that do not, on it at a time.
#include "daemon/agent/gpus/gpu_schedule.h"

#include <gtest/gtest.h>

#include "tests/unit/daemon/gpus/made_gpu.h"

namespace tierpilot::agent {
namespace {

using ScheduledGpu = MadeGpu<GpuSchedule>;

// Until what they want is known, and they were held to it.
constexpr int kKnown_ms = 10'000;
constexpr int kSamplesCeased_ms = 2'500;

MadeProgram busy(int percent, int cycle_ms = 10) {
  return {.host_percent = 100 - percent, .cycle_ms = cycle_ms};
}

// On the GPU for all of their shares.
TEST(GpuSchedule, TwoThatSaturateItTakeExclusiveTurns) {
  for (const int period_ms : {10, 167, 1000}) {
    SCOPED_TRACE(period_ms);
    ScheduledGpu gpu;
    gpu.period_ms = period_ms;
    gpu.add(1, 300), gpu.add(2, 600);
    for (int times = 0; times < 12; ++times) {
      gpu.forget();
      gpu.run(10'000);
      EXPECT_NEAR(gpu.speed_milli(1), 300, kAllowed_milli);
      EXPECT_NEAR(gpu.speed_milli(2), 600, kAllowed_milli);
      EXPECT_EQ(gpu.together_ms(), 0);
    }
  }
}

TEST(GpuSchedule, WhoUsesNoMoreThanItsShareIsNotStopped) {
  ScheduledGpu gpu;
  gpu.add(1, 300, busy(30));
  gpu.run(kKnown_ms);
  gpu.forget();
  gpu.run(60'000);
  EXPECT_EQ(gpu.stood_ms(1), 0);
}

TEST(GpuSchedule, SeveralThatWaitForTheirHostsRunAtATime) {
  ScheduledGpu gpu;
  gpu.add(1, 300, busy(30, 10)), gpu.add(2, 300, busy(30, 14)), gpu.add(3, 300, busy(30, 23));
  gpu.run(kKnown_ms);
  gpu.forget();
  gpu.run(60'000);
  for (const uint64_t task : {1, 2, 3}) {
    EXPECT_EQ(gpu.stood_ms(task), 0) << task;
    EXPECT_GE(gpu.speed_milli(task), 750) << task;
  }
}

// Its kernels wait for the other's in the other's turns, for which the other has longer ones.
TEST(GpuSchedule, BesideOneThatSaturatesTheGpuItHasNearlyItsWholeSpeed) {
  for (const int period_ms : {10, 167, 500}) {
    SCOPED_TRACE(period_ms);
    ScheduledGpu gpu;
    gpu.period_ms = period_ms;
    gpu.add(1, 300), gpu.add(2, 300, busy(30));
    gpu.run(kKnown_ms);
    gpu.forget();
    gpu.run(60'000);
    EXPECT_EQ(gpu.stood_ms(2), 0);
    EXPECT_GE(gpu.speed_milli(2), 900);
    EXPECT_NEAR(gpu.speed_milli(1), 300, kAllowed_milli);
  }
}

// With little of the GPU left over, slices that are equal leave it no more.
TEST(GpuSchedule, OneThatSaturatesTheGpuHasItsShareBesideAnyOther) {
  ScheduledGpu gpu;
  gpu.add(1, 600), gpu.add(2, 300, busy(30));
  gpu.run(kKnown_ms);
  gpu.forget();
  gpu.run(60'000);
  EXPECT_NEAR(gpu.speed_milli(1), 600, kAllowed_milli);
  EXPECT_EQ(gpu.stood_ms(2), 0);
  EXPECT_GE(gpu.speed_milli(2), 780);
}

TEST(GpuSchedule, TwoThatSaturateItAndOneThatDoesNot) {
  ScheduledGpu gpu;
  gpu.add(1, 300), gpu.add(2, 400), gpu.add(3, 200, busy(20));
  gpu.run(kKnown_ms);
  for (int times = 0; times < 6; ++times) {
    gpu.forget();
    gpu.run(10'000);
    EXPECT_NEAR(gpu.speed_milli(1), 300, kAllowed_milli);
    EXPECT_NEAR(gpu.speed_milli(2), 400, kAllowed_milli);
    EXPECT_EQ(gpu.stood_ms(3), 0);
    EXPECT_GE(gpu.speed_milli(3), 800);
  }
}

TEST(GpuSchedule, WhoUsesMoreThanItsShareIsHeldToIt) {
  for (const bool beside : {false, true}) {
    SCOPED_TRACE(beside);
    ScheduledGpu gpu;
    gpu.add(1, 200, busy(40));
    if (beside) gpu.add(2, 600);
    gpu.run(kKnown_ms);
    gpu.forget();
    gpu.run(60'000);
    EXPECT_NEAR(gpu.used_milli(1), 200, kAllowed_milli);
    if (beside) {
      EXPECT_NEAR(gpu.used_milli(2), 600, kAllowed_milli);
    }
  }
}

TEST(GpuSchedule, OneThatComesToSaturateTheGpuAndCeasesTo) {
  for (const bool beside : {false, true}) {
    SCOPED_TRACE(beside);
    ScheduledGpu gpu;
    gpu.add(1, 300, busy(30));
    if (beside) gpu.add(2, 600);
    for (int times = 0; times < 3; ++times) {
      gpu.change(1, busy(30));
      gpu.run(20'000);
      gpu.forget();
      gpu.run(10'000);
      EXPECT_EQ(gpu.stood_ms(1), 0);
      if (beside) {
        EXPECT_NEAR(gpu.used_milli(2), 600, kAllowed_milli);
      }
      gpu.change(1, busy(100));
      gpu.run(10'000);
      gpu.forget();
      gpu.run(10'000);
      EXPECT_NEAR(gpu.used_milli(1), 300, kAllowed_milli);
      if (beside) {
        EXPECT_NEAR(gpu.used_milli(2), 600, kAllowed_milli);
      }
    }
  }
}

// Each is seen for a part of the time only while the others compute.
TEST(GpuSchedule, SeveralThatComeToSaturateItAtOnceDoNotStayBesideEachOther) {
  for (const int count : {2, 3, 4}) {
    SCOPED_TRACE(count);
    ScheduledGpu gpu;
    const uint32_t milli = 900u / static_cast<uint32_t>(count);
    for (int task = 1; task <= count; ++task)
      gpu.add(static_cast<uint64_t>(task), milli, busy(20, 10 + task));
    gpu.run(30'000);
    for (int task = 1; task <= count; ++task) gpu.change(static_cast<uint64_t>(task), busy(100));
    gpu.run(60'000);
    gpu.forget();
    gpu.run(10'000);
    EXPECT_EQ(gpu.together_ms(), 0);
    for (int task = 1; task <= count; ++task)
      EXPECT_NEAR(gpu.speed_milli(static_cast<uint64_t>(task)), milli, kAllowed_milli);
  }
}

TEST(GpuSchedule, AShareThatGrowsIsHadAtOnce) {
  ScheduledGpu gpu;
  gpu.add(1, 200, busy(40)), gpu.add(2, 300);
  gpu.run(kKnown_ms);
  gpu.set(1, 400), gpu.set(2, 500);
  gpu.forget();
  gpu.run(10'000);
  EXPECT_EQ(gpu.stood_ms(1), 0);
  EXPECT_NEAR(gpu.speed_milli(2), 500, kAllowed_milli);
  gpu.set(1, 200);
  gpu.forget();
  gpu.run(10'000);
  EXPECT_NEAR(gpu.used_milli(1), 200, kAllowed_milli);
}

TEST(GpuSchedule, WithoutSamplesAllTurnsAreExclusiveAndByTheClock) {
  ScheduledGpu gpu;
  gpu.samples_ms = -1;
  gpu.add(1, 300, busy(30)), gpu.add(2, 600);
  gpu.run(kKnown_ms);
  gpu.forget();
  gpu.run(10'000);
  EXPECT_EQ(gpu.together_ms(), 0);
  EXPECT_NEAR(gpu.speed_milli(1), 300, kAllowed_milli);
  EXPECT_NEAR(gpu.speed_milli(2), 600, kAllowed_milli);
}

TEST(GpuSchedule, WhereSamplesCeaseTurnsAreExclusiveAgain) {
  ScheduledGpu gpu;
  gpu.add(1, 300, busy(30)), gpu.add(2, 600);
  gpu.run(kKnown_ms);
  gpu.forget();
  gpu.run(1'000);
  EXPECT_GT(gpu.together_ms(), 0);
  gpu.samples_ms = -1;
  gpu.run(kSamplesCeased_ms);
  gpu.turns.unmeasured();
  gpu.forget();
  gpu.run(10'000);
  EXPECT_EQ(gpu.together_ms(), 0);
  EXPECT_NEAR(gpu.speed_milli(1), 300, kAllowed_milli);
}

TEST(GpuSchedule, ALookWithoutSamplesChangesNothing) {
  ScheduledGpu gpu;
  gpu.add(1, 300, busy(30)), gpu.add(2, 600);
  gpu.run(kKnown_ms);
  gpu.forget();
  gpu.run(10'000);
  const double undisturbed_milli = gpu.speed_milli(1);
  for (int looks = 0; looks < 10; ++looks) {
    gpu.turns.unmeasured();
    gpu.run(1'000);
  }
  EXPECT_EQ(gpu.stood_ms(1), 0);
  EXPECT_NEAR(gpu.speed_milli(1), undisturbed_milli, kAllowed_milli);
}

TEST(GpuSchedule, TurnsBesideOthersAreByTheClock) {
  GpuSchedule schedule;
  schedule.advance(1);
  schedule.set_beside({1, 1}, 500), schedule.set_beside({2, 1}, 1000);
  int64_t ran_ms = 0, both_ms = 0;
  for (int64_t ms = 1; ms <= 6'000; ++ms) {
    schedule.advance(ms * ScheduledGpu::kMs);
    ran_ms += schedule.runs({1, 1});
    both_ms += schedule.runs({1, 1}) && schedule.runs({2, 1});
    EXPECT_TRUE(schedule.runs({2, 1}));
    if (ms % 250 == 0) schedule.used({{{1, 1}, 10'000'000}});
  }
  EXPECT_NEAR(static_cast<double>(ran_ms), 3'000, 300);
  EXPECT_EQ(both_ms, ran_ms);
  schedule.remove({1, 1}), schedule.remove({2, 1});
  schedule.advance(6'001 * ScheduledGpu::kMs);
  EXPECT_TRUE(schedule.empty());
  EXPECT_EQ(schedule.next_ns(), GpuTurns::kNever_ns);
}

}  // namespace
}  // namespace tierpilot::agent
