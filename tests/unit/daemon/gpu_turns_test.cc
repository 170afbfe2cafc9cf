// Programs on a GPU that is made up: of two that have kernels there at a time each gets half of it.
#include "daemon/agent/gpus/gpu_turns.h"

#include <gtest/gtest.h>

#include <deque>

#include "base/random.h"

namespace tierpilot::agent {
namespace {

constexpr int64_t kMs = 1'000'000;
constexpr int kSampled_ms = 250;
constexpr double kAllowed_milli = 50;

struct Program {
  int host_percent = 0;  // of the time alone, in which it has nothing on the GPU
  int queue_ms = 0;      // kernels that it has launched and does not wait for
};

class Gpu {
 public:
  int late_ms = 0;         // timers, at most
  int samples_ms = 300;    // they come so late; less than 0: never
  int period_ms = 10;      // of what they tell at a time
  double exaggerated = 1;  // what they tell
  GpuTurns turns;

  void add(uint64_t task, uint32_t milli, const Program& program = {}) {
    tasks_[task].program = program;
    tasks_[task].asked_ms = now_ms_;
    turns.advance(now_ms_ * kMs);
    turns.set({task, 1}, milli);
    settle();
  }
  void set(uint64_t task, uint32_t milli) {
    turns.advance(now_ms_ * kMs);
    turns.set({task, 1}, milli);
    settle();
  }
  void remove(uint64_t task) {
    tasks_.erase(task);
    turns.advance(now_ms_ * kMs);
    turns.remove({task, 1});
    settle();
  }
  void run(int ms) {
    for (const int64_t end_ms = now_ms_ + ms; now_ms_ < end_ms;) {
      compute();
      ++now_ms_;
      if (now_ms_ % kSampled_ms == 0) sample();
      if (now_ms_ >= due_ms_ || now_ms_ % kSampled_ms == 0) settle();
    }
  }
  void pause(int64_t ms) { now_ms_ += ms; }
  // Of what it would have done alone since this was last asked.
  double speed_milli(uint64_t task) {
    auto& one = tasks_.at(task);
    const double since_ms = static_cast<double>(now_ms_ - std::exchange(one.asked_ms, now_ms_));
    return 1000 * std::exchange(one.done_ms, 0) / since_ms;
  }
  void forget() {
    for (auto& [id, one] : tasks_) speed_milli(id);
  }
  int longest_wait_ms(uint64_t task) const { return tasks_.at(task).longest_wait_ms; }

 private:
  struct Task {
    Program program;
    double queued_ms = 0, done_ms = 0, used_ms = 0;
    double told_ms = 0;
    std::deque<double> used_at;  // by millisecond, of late
    int64_t asked_ms = 0;
    int wait_ms = 0, longest_wait_ms = 0;
  };

  void settle() {
    const auto before = turns.runs();
    turns.advance(now_ms_ * kMs);
    const auto after = turns.runs();
    EXPECT_TRUE(!before || !after || *before == *after) << "nobody stood still between";
    const int64_t next_ms = std::min<int64_t>(turns.next_ns() / kMs + 1, now_ms_ + 1'000'000);
    due_ms_ = next_ms + (late_ms > 0 ? static_cast<int64_t>(random_.below(late_ms)) : 0);
  }
  bool runs(uint64_t id) const { return turns.runs() == AttemptId{id, 1}; }
  bool on_host(const Task& task) const { return now_ms_ % 10 < task.program.host_percent / 10; }

  void compute() {
    int busy = 0;
    for (auto& [id, task] : tasks_) {
      if (runs(id) && !on_host(task))
        task.queued_ms = std::max(task.queued_ms, 1.0 + task.program.queue_ms);
      if (task.queued_ms > 0) ++busy;
      task.wait_ms = runs(id) ? 0 : task.wait_ms + 1;
      task.longest_wait_ms = std::max(task.longest_wait_ms, task.wait_ms);
    }
    for (auto& [id, task] : tasks_) {
      if (task.queued_ms > 0) {
        const double part_ms = std::min(task.queued_ms, 1.0 / busy);
        task.queued_ms -= part_ms;
        task.used_ms += part_ms;
        task.done_ms += part_ms;
      } else if (runs(id)) {
        task.done_ms += 1;
      }
      task.used_at.push_back(task.used_ms);
      if (task.used_at.size() > 2000) task.used_at.pop_front();
    }
  }
  void sample() {
    if (samples_ms < 0) return;
    turns.advance(now_ms_ * kMs);
    for (auto& [id, task] : tasks_) {
      const auto old_ms = static_cast<size_t>(samples_ms + now_ms_ % period_ms);
      if (task.used_at.size() <= old_ms) continue;
      const double used_ms = task.used_at[task.used_at.size() - 1 - old_ms];
      const double since_ms = used_ms - std::exchange(task.told_ms, used_ms);
      turns.used({id, 1}, static_cast<int64_t>(since_ms * exaggerated * kMs));
    }
  }

  SeededRandom random_{7};
  std::map<uint64_t, Task> tasks_;
  int64_t now_ms_ = 1, due_ms_ = 1;
};

// Over ten seconds, from the first on.
void expect_held(Gpu& gpu, const std::map<uint64_t, double>& shares) {
  gpu.forget();
  gpu.run(10'000);
  for (const auto& [task, milli] : shares)
    EXPECT_NEAR(gpu.speed_milli(task), milli, kAllowed_milli) << "task " << task;
}

TEST(GpuTurns, EachHasItsShareOfItsSpeedAlone) {
  Gpu gpu;
  gpu.add(1, 300), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, OneThatIsAloneGetsNoMore) {
  Gpu gpu;
  gpu.add(1, 300);
  expect_held(gpu, {{1, 300}});
}

TEST(GpuTurns, WholeGpusAreGivenToTheEnd) {
  Gpu gpu;
  gpu.add(1, 100), gpu.add(2, 200), gpu.add(3, 700);
  expect_held(gpu, {{1, 100}, {2, 200}, {3, 700}});
}

TEST(GpuTurns, SmallSharesAreHeldToo) {
  Gpu gpu;
  for (uint64_t task = 1; task <= 20; ++task) gpu.add(task, 50);
  gpu.forget();
  gpu.run(10'000);
  for (uint64_t task = 1; task <= 20; ++task) EXPECT_NEAR(gpu.speed_milli(task), 50, 15);
}

TEST(GpuTurns, WithoutSamplesTheyAreByTheClock) {
  Gpu gpu;
  gpu.samples_ms = -1;
  gpu.add(1, 300), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, LatenessDoesNotAddUp) {
  for (const int late_ms : {5, 20, 50}) {
    Gpu gpu;
    gpu.late_ms = late_ms;
    gpu.add(1, 300), gpu.add(2, 600);
    SCOPED_TRACE(late_ms);
    expect_held(gpu, {{1, 300}, {2, 600}});
  }
}

TEST(GpuTurns, WhoLeavesKernelsBehindPaysForThem) {
  for (const auto& [queue_of_1, queue_of_2] : {std::pair(100, 0), {0, 100}, {30, 30}}) {
    SCOPED_TRACE(queue_of_1);
    Gpu gpu;
    gpu.add(1, 300, {.queue_ms = queue_of_1}), gpu.add(2, 600, {.queue_ms = queue_of_2});
    expect_held(gpu, {{1, 300}, {2, 600}});
    expect_held(gpu, {{1, 300}, {2, 600}});
  }
  Gpu gpu;
  gpu.add(1, 300, {.queue_ms = 100});
  expect_held(gpu, {{1, 300}});
  Gpu both;
  both.add(1, 300, {.queue_ms = 100}), both.add(2, 600, {.queue_ms = 100});
  both.run(5'000);
  expect_held(both, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, SamplesMayComeInLumps) {
  for (const int period_ms : {167, 500, 1000}) {
    SCOPED_TRACE(period_ms);
    Gpu gpu;
    gpu.period_ms = period_ms;
    gpu.add(1, 300), gpu.add(2, 600);
    expect_held(gpu, {{1, 300}, {2, 600}});
    expect_held(gpu, {{1, 300}, {2, 600}});
  }
}

TEST(GpuTurns, WhoLeavesVeryManyGetsNoMoreForIt) {
  Gpu gpu;
  gpu.add(1, 300, {.queue_ms = 1000}), gpu.add(2, 600);
  gpu.run(10'000);
  expect_held(gpu, {{1, 300}});
}

TEST(GpuTurns, WhoComputesOnTheHostHasItsWholeTurns) {
  Gpu gpu;
  gpu.add(1, 300, {.host_percent = 60}), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
  Gpu both;
  both.add(1, 300, {.host_percent = 90}), both.add(2, 600, {.host_percent = 50});
  expect_held(both, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, SamplesMayTellTooMuchByATwentieth) {
  Gpu gpu;
  gpu.exaggerated = 1.05;
  gpu.add(1, 300), gpu.add(2, 600);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

TEST(GpuTurns, AttemptsComeAndGo) {
  Gpu gpu;
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
  Gpu gpu;
  gpu.add(1, 300), gpu.add(2, 600);
  gpu.run(5'000);
  gpu.set(1, 700), gpu.set(2, 200);
  expect_held(gpu, {{1, 700}, {2, 200}});
  gpu.set(2, 0);
  expect_held(gpu, {{1, 700}, {2, 1}});
}

TEST(GpuTurns, AWholeShareIsNeverStopped) {
  Gpu gpu;
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

TEST(GpuTurns, WhoEndsLeavesTheGpuAtOnce) {
  Gpu gpu;
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
  Gpu gpu;
  gpu.exaggerated = 50;
  gpu.late_ms = 20;
  gpu.add(1, 100), gpu.add(2, 800, {.queue_ms = 1000}), gpu.add(3, 100, {.queue_ms = 300});
  gpu.run(60'000);
  for (const uint64_t task : {1, 2, 3}) EXPECT_LE(gpu.longest_wait_ms(task), 5'000) << task;
}

TEST(GpuTurns, APauseOfTheMachineIsNotMadeUpFor) {
  Gpu gpu;
  gpu.add(1, 300), gpu.add(2, 600);
  gpu.run(1'000);
  gpu.pause(3'600'000);
  gpu.run(3'000);
  expect_held(gpu, {{1, 300}, {2, 600}});
}

}  // namespace
}  // namespace tierpilot::agent
