// Programs that take turns on a made GPU.
#include "daemon/agent/gpus/gpu_turns.h"

#include <gtest/gtest.h>

#include "tests/unit/daemon/gpus/made_gpu.h"

namespace tierpilot::agent {
namespace {

using TurnsGpu = MadeGpu<GpuTurns>;

// Over ten seconds, from the first on.
void expect_held(TurnsGpu& gpu, const std::map<uint64_t, double>& shares) {
  gpu.forget();
  gpu.run(10'000);
  for (const auto& [task, milli] : shares)
    EXPECT_NEAR(gpu.speed_milli(task), milli, kAllowed_milli) << "task " << task;
}

TEST(GpuTurns, EachHasItsShareOfItsSpeedAlone) {
  TurnsGpu gpu;
  gpu.add(1, 300), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, OneThatIsAloneGetsNoMore) {
  TurnsGpu gpu;
  gpu.add(1, 300);
  expect_held(gpu, {{1, 300}});
}

TEST(GpuTurns, WholeGpusAreGivenToTheEnd) {
  TurnsGpu gpu;
  gpu.add(1, 100), gpu.add(2, 200), gpu.add(3, 700);
  expect_held(gpu, {{1, 100}, {2, 200}, {3, 700}});
}

TEST(GpuTurns, SmallSharesAreHeldToo) {
  TurnsGpu gpu;
  for (uint64_t task = 1; task <= 20; ++task) gpu.add(task, 50);
  gpu.forget();
  gpu.run(10'000);
  for (uint64_t task = 1; task <= 20; ++task) EXPECT_NEAR(gpu.speed_milli(task), 50, 15);
}

TEST(GpuTurns, WithoutSamplesTheyAreByTheClock) {
  TurnsGpu gpu;
  gpu.samples_ms = -1;
  gpu.add(1, 300), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, ALongTimeWithoutSamplesIsNotSetOffAgainstTheFirstOnes) {
  GpuTurns turns;
  turns.advance(1);
  turns.set({1, 1}, 500);
  int64_t now_ms = 0;
  const auto ran_ms = [&](int64_t ms, bool measured) {
    int64_t ran = 0;
    for (const int64_t end_ms = now_ms + ms; now_ms < end_ms;) {
      turns.advance(++now_ms * 1'000'000);
      ran += turns.runs().has_value();
      if (!measured && now_ms % 250 == 0) turns.unmeasured();
    }
    return ran;
  };
  ran_ms(600'000, false);
  EXPECT_NEAR(static_cast<double>(ran_ms(2'000, true)), 1'000, 150);
  turns.used({1, 1}, 2'500'000'000);
  EXPECT_LE(ran_ms(2'000, true), 500) << "it pays for what it used too much";
}

TEST(GpuTurns, LatenessDoesNotAddUp) {
  for (const int late_ms : {5, 20, 50}) {
    TurnsGpu gpu;
    gpu.late_ms = late_ms;
    gpu.add(1, 300), gpu.add(2, 600);
    SCOPED_TRACE(late_ms);
    expect_held(gpu, {{1, 300}, {2, 600}});
  }
}

TEST(GpuTurns, WhoLeavesKernelsBehindPaysForThem) {
  for (const auto& [queue_of_1, queue_of_2] : {std::pair(100, 0), {0, 100}, {30, 30}}) {
    SCOPED_TRACE(queue_of_1);
    TurnsGpu gpu;
    gpu.add(1, 300, {.queue_ms = queue_of_1}), gpu.add(2, 600, {.queue_ms = queue_of_2});
    expect_held(gpu, {{1, 300}, {2, 600}});
    expect_held(gpu, {{1, 300}, {2, 600}});
  }
  TurnsGpu gpu;
  gpu.add(1, 300, {.queue_ms = 100});
  expect_held(gpu, {{1, 300}});
  TurnsGpu both;
  both.add(1, 300, {.queue_ms = 100}), both.add(2, 600, {.queue_ms = 100});
  both.run(5'000);
  expect_held(both, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, SamplesMayComeInLumps) {
  for (const int period_ms : {167, 500, 1000}) {
    SCOPED_TRACE(period_ms);
    TurnsGpu gpu;
    gpu.period_ms = period_ms;
    gpu.add(1, 300), gpu.add(2, 600);
    expect_held(gpu, {{1, 300}, {2, 600}});
    expect_held(gpu, {{1, 300}, {2, 600}});
  }
}

TEST(GpuTurns, WhoLeavesVeryManyGetsNoMoreForIt) {
  TurnsGpu gpu;
  gpu.add(1, 300, {.queue_ms = 1000}), gpu.add(2, 600);
  gpu.run(10'000);
  expect_held(gpu, {{1, 300}});
}

TEST(GpuTurns, WhoComputesOnTheHostHasItsWholeTurns) {
  TurnsGpu gpu;
  gpu.add(1, 300, {.host_percent = 60}), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
  TurnsGpu both;
  both.add(1, 300, {.host_percent = 90}), both.add(2, 600, {.host_percent = 50});
  expect_held(both, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, SamplesMayTellTooMuchByATwentieth) {
  TurnsGpu gpu;
  gpu.exaggerated = 1.05;
  gpu.add(1, 300), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, AttemptsComeAndGo) {
  TurnsGpu gpu;
  gpu.add(1, 300), gpu.add(2, 500);
  gpu.run(3'000);
  gpu.forget();
  gpu.add(3, 200);
  gpu.run(3'000);
  EXPECT_NEAR(gpu.speed_milli(3), 200, kAllowed_milli);
  gpu.remove(2);
  gpu.run(3'000);
  EXPECT_NEAR(gpu.speed_milli(3), 200, kAllowed_milli);
  gpu.add(4, 400);
  gpu.run(4'000);
  EXPECT_NEAR(gpu.speed_milli(1), 300, kAllowed_milli);
  EXPECT_NEAR(gpu.speed_milli(4), 400, kAllowed_milli + 10) << "from its first moment";
}

TEST(GpuTurns, AShareThatChangesIsHeldFromThenOn) {
  TurnsGpu gpu;
  gpu.add(1, 300), gpu.add(2, 600);
  gpu.run(5'000);
  gpu.set(1, 700), gpu.set(2, 200);
  expect_held(gpu, {{1, 700}, {2, 200}});
  gpu.set(2, 0);
  expect_held(gpu, {{1, 700}, {2, 1}});
}

TEST(GpuTurns, AWholeShareIsNeverStopped) {
  TurnsGpu gpu;
  gpu.add(1, 1000, {.queue_ms = 100});
  gpu.run(10'000);
  EXPECT_EQ(gpu.longest_wait_ms(1), 0);
  gpu.set(1, 500);
  expect_held(gpu, {{1, 500}});
  gpu.set(1, 1000);
  gpu.run(1'000);
  gpu.forget();
  gpu.run(1'000);
  EXPECT_EQ(gpu.speed_milli(1), 1000);
}

TEST(GpuTurns, BesideAWholeShareASmallOneHasItsTurns) {
  for (const uint32_t milli : {1u, 50u, 300u}) {
    TurnsGpu gpu;
    gpu.add(1, 1000);
    gpu.run(3'000);
    gpu.add(2, milli);
    gpu.run(30'000);
    gpu.forget();
    gpu.run(60'000);
    EXPECT_GE(gpu.speed_milli(2), 0.5 * milli) << milli;
    EXPECT_GE(gpu.speed_milli(1), 950 - milli) << milli;
    gpu.remove(2);
    gpu.run(1'000);
    gpu.forget();
    gpu.run(1'000);
    EXPECT_EQ(gpu.longest_wait_ms(1), 0) << "alone again";
  }
}

TEST(GpuTurns, WhoEndsLeavesTheGpuAtOnce) {
  TurnsGpu gpu;
  gpu.add(1, 900);
  while (!gpu.turns.runs()) gpu.run(1);
  gpu.remove(1);
  EXPECT_FALSE(gpu.turns.runs());
  EXPECT_EQ(gpu.turns.next_ns(), GpuTurns::kNever_ns);
  EXPECT_TRUE(gpu.turns.empty());
}

TEST(GpuTurns, NobodyBeginsWhileTheLastOneIsSeenToRun) {
  GpuTurns turns;
  turns.advance(1);
  for (const uint64_t task : {1, 2}) turns.set({task, 1}, 500);
  turns.advance(2);
  const auto first = turns.runs();
  ASSERT_TRUE(first);
  turns.advance(turns.next_ns());
  EXPECT_FALSE(turns.runs());
  for (int looks = 0; looks < 10; ++looks) {
    EXPECT_EQ(turns.leaves(turns.next_ns()), first);
    turns.runs_on(turns.next_ns());
    turns.advance(turns.next_ns());
    EXPECT_FALSE(turns.runs());
  }
  turns.advance(turns.next_ns());
  ASSERT_TRUE(turns.runs());
  EXPECT_NE(turns.runs(), first);
}

// Whatever samples say, and however long its neighbours' kernels are.
TEST(GpuTurns, NobodyStarves) {
  TurnsGpu gpu;
  gpu.exaggerated = 50;
  gpu.late_ms = 20;
  gpu.add(1, 100), gpu.add(2, 800, {.queue_ms = 1000}), gpu.add(3, 100, {.queue_ms = 300});
  gpu.run(60'000);
  for (const uint64_t task : {1, 2, 3}) EXPECT_LE(gpu.longest_wait_ms(task), 5'000) << task;
}

TEST(GpuTurns, APauseOfTheMachineIsNotMadeUpFor) {
  TurnsGpu gpu;
  gpu.add(1, 300), gpu.add(2, 600);
  gpu.run(1'000);
  gpu.pause(3'600'000);
  gpu.run(3'000);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

}  // namespace
}  // namespace tierpilot::agent
