// What the coordinator's loop spends on a queue of tasks that wait for shares of many full units: a
// look at it, and the end and the start of a task. TIERPILOT_BENCH_UNITS sets how many.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "base/bytes.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

constexpr size_t kUnitsOfANode = 8;
constexpr size_t kWaiting = 1000;

size_t wanted_units() {
  const char* const text = std::getenv("TIERPILOT_BENCH_UNITS");
  return text ? std::strtoul(text, nullptr, 10) : 2000;
}

template <class Work>
double took_ms(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

class ShareQueueBench : public ShareKeeperTest {
 protected:
  // Two jobs on each unit.
  void fill(size_t units) {
    for (size_t n = 0; n * kUnitsOfANode < units; ++n)
      join_sharing("node" + std::to_string(n), kUnitsOfANode);
    for (size_t i = 0; i < 2 * units; i += 512) {
      EXPECT_TRUE(submit(tasks("job" + std::to_string(i), std::min<size_t>(512, 2 * units - i))));
      for (int looks = 0; looks < 2; ++looks) pump();
    }
  }
  // `step_bytes`: each asks for so much more memory than the one before.
  std::vector<TaskSpec> tasks(const std::string& name, size_t count, uint32_t milli = 500,
                              uint64_t step_bytes = 0) {
    std::vector<TaskSpec> made;
    for (size_t i = 0; i < count; ++i) {
      made.push_back(shared(name + "." + std::to_string(i), milli));
      if (step_bytes > 0) made.back().memory_bytes = 16 * kMiB + i * step_bytes;
    }
    return made;
  }
  void print(const char* what, std::vector<double> ms) {
    std::sort(ms.begin(), ms.end());
    fmt::print("{:<44}p50 {:8.2f} ms, most {:8.2f} ms\n", what, ms[ms.size() / 2], ms.back());
  }
  std::vector<double> looks() {
    std::vector<double> ms;
    for (int i = 0; i < 20; ++i) {
      clock_.advance_ns(100'000'000);
      ms.push_back(took_ms([&] { keeper_->pump(); }));
    }
    return ms;
  }
};

TEST_F(ShareQueueBench, PrintsWhatTheLoopSpends) {
  const size_t units = wanted_units();
  fill(units);
  std::vector<uint64_t> running;
  for (const auto& [id, task] : state_->tasks.all())
    if (task.state == TaskState::kRunning) running.push_back(id);
  fmt::print("{} units, {} jobs run on them\n", units, running.size());
  ASSERT_GT(running.size(), 20U);
  EXPECT_TRUE(submit(tasks("alike", kWaiting, 600)));
  print("A look at 1,000 tasks of one kind", looks());
  EXPECT_TRUE(submit(tasks("unlike", kWaiting, 600, 4096)));
  print("A look at 1,000 more of 1,000 kinds", looks());
  std::vector<double> ends;
  for (size_t i = 0; i < 20; ++i)
    ends.push_back(took_ms([&] { keeper_->ended(task(running[i]), false); }));
  print("The end of a task", ends);
}

}  // namespace
}  // namespace tierpilot::testing
