// Programs on a GPU that is made up: of those that have kernels there at a time each gets as much
// of it as the others. Time goes on by milliseconds.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "base/random.h"
#include "daemon/agent/gpus/gpu_schedule.h"
#include "daemon/agent/gpus/gpu_turns.h"

namespace tierpilot::agent {

inline constexpr double kAllowed_milli = 50;  // that a share that is held may be off

struct MadeProgram {
  int host_percent = 0;  // of the time alone, in which it has nothing on the GPU
  int queue_ms = 0;      // kernels that it has launched and does not wait for
  int cycle_ms = 10;     // on the GPU, then on the host, alone
};

inline bool may_run(const GpuTurns& turns, AttemptId attempt) {
  return turns.runs() == attempt;
}
inline bool may_run(const GpuSchedule& schedule, AttemptId attempt) {
  return schedule.runs(attempt);
}
inline void tell_used(GpuTurns& turns, const std::map<AttemptId, int64_t>& used_ns) {
  for (const auto& [attempt, ns] : used_ns) turns.used(attempt, ns);
}
inline void tell_used(GpuSchedule& schedule, const std::map<AttemptId, int64_t>& used_ns) {
  schedule.used(used_ns);
}
// Of those that exclude each other.
inline std::optional<AttemptId> only_one(const GpuTurns& turns) {
  return turns.runs();
}
inline std::optional<AttemptId> only_one(const GpuSchedule&) {
  return std::nullopt;
}

// `Turns` say who may run.
template <class Turns>
class MadeGpu {
 public:
  static constexpr int64_t kMs = 1'000'000;
  static constexpr int kSampled_ms = 250;

  int late_ms = 0;         // timers, at most
  int samples_ms = 300;    // they come so late; less than 0: never
  int period_ms = 10;      // of what they tell at a time
  double exaggerated = 1;  // what they tell
  Turns turns;

  void add(uint64_t task, uint32_t milli, const MadeProgram& program = {}) {
    tasks_[task].program = program;
    tasks_[task].asked_ms = now_ms_;
    set(task, milli);
  }
  void set(uint64_t task, uint32_t milli) {
    turns.advance(now_ms_ * kMs);
    turns.set({task, 1}, milli);
    settle();
  }
  void change(uint64_t task, const MadeProgram& program) { tasks_.at(task).program = program; }
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
    one.used_before_ms = one.used_ms;
    return 1000 * std::exchange(one.done_ms, 0) / since_ms;
  }
  // Of the GPU's time, since its speed was last asked.
  double used_milli(uint64_t task) const {
    const auto& one = tasks_.at(task);
    return 1000 * (one.used_ms - one.used_before_ms) / static_cast<double>(now_ms_ - one.asked_ms);
  }
  void forget() {
    for (auto& [id, one] : tasks_) {
      speed_milli(id);
      one.stood_ms = one.longest_wait_ms = 0;
    }
    together_ms_ = 0;
  }
  int longest_wait_ms(uint64_t task) const { return tasks_.at(task).longest_wait_ms; }
  // Since all was forgotten.
  int64_t stood_ms(uint64_t task) const { return tasks_.at(task).stood_ms; }
  // In which more than one might run.
  int64_t together_ms() const { return together_ms_; }

 private:
  struct Task {
    MadeProgram program;
    double queued_ms = 0, done_ms = 0, used_ms = 0, used_before_ms = 0;
    double phase_ms = 0;  // of its cycle
    double told_ms = 0;
    std::deque<double> used_at;  // by millisecond, of late
    int64_t asked_ms = 0, stood_ms = 0;
    int wait_ms = 0, longest_wait_ms = 0;

    void proceed(double ms) {
      done_ms += ms;
      phase_ms = std::fmod(phase_ms + ms, program.cycle_ms);
    }
    // Of the cycle, until it computes on the host.
    double left_ms() const {
      const double left = program.cycle_ms * (100 - program.host_percent) / 100.0 - phase_ms;
      return left > 1e-6 ? left : 0;
    }
  };

  void settle() {
    const auto before = only_one(turns);
    turns.advance(now_ms_ * kMs);
    const auto after = only_one(turns);
    EXPECT_TRUE(!before || !after || *before == *after) << "nobody stood still between";
    const int64_t next_ms = std::min<int64_t>(turns.next_ns() / kMs + 1, now_ms_ + 1'000'000);
    due_ms_ = next_ms + (late_ms > 0 ? static_cast<int64_t>(random_.below(late_ms)) : 0);
  }
  bool runs(uint64_t id) const { return may_run(turns, {id, 1}); }

  void compute() {
    int busy = 0, running = 0;
    for (auto& [id, task] : tasks_) {
      const bool running_now = runs(id);
      if (running_now && task.left_ms() > 0)
        task.queued_ms =
            std::max(task.queued_ms, std::min(1.0, task.left_ms()) + task.program.queue_ms);
      if (task.queued_ms > 0) ++busy;
      running += running_now;
      task.stood_ms += !running_now;
      task.wait_ms = running_now ? 0 : task.wait_ms + 1;
      task.longest_wait_ms = std::max(task.longest_wait_ms, task.wait_ms);
    }
    together_ms_ += running > 1;
    for (auto& [id, task] : tasks_) {
      if (task.queued_ms > 0) {
        const double part_ms = std::min(task.queued_ms, 1.0 / busy);
        task.queued_ms -= part_ms;
        task.used_ms += part_ms;
        task.proceed(part_ms);
      } else if (runs(id)) {
        task.proceed(1);
      }
      task.used_at.push_back(task.used_ms);
      if (task.used_at.size() > 2000) task.used_at.pop_front();
    }
  }
  void sample() {
    if (samples_ms < 0) return;
    turns.advance(now_ms_ * kMs);
    std::map<AttemptId, int64_t> used_ns;
    for (auto& [id, task] : tasks_) {
      const auto old_ms = static_cast<size_t>(samples_ms + now_ms_ % period_ms);
      if (task.used_at.size() <= old_ms) continue;
      const double used_ms = task.used_at[task.used_at.size() - 1 - old_ms];
      const double since_ms = used_ms - std::exchange(task.told_ms, used_ms);
      used_ns[{id, 1}] = static_cast<int64_t>(since_ms * exaggerated * kMs);
    }
    tell_used(turns, used_ns);
  }

  SeededRandom random_{7};
  std::map<uint64_t, Task> tasks_;
  int64_t now_ms_ = 1, due_ms_ = 1, together_ms_ = 0;
};

}  // namespace tierpilot::agent
