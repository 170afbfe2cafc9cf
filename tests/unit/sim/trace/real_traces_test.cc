// Published traces, where they are: in ../shared/data beside the source, or in TIERPILOT_TRACES.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "tests/unit/sim/trace/trace_fixture.h"

namespace tierpilot::sim {
namespace {

class RealTraces : public TraceTest {
 protected:
  void SetUp() override {
    const char* elsewhere = std::getenv("TIERPILOT_TRACES");
    folder_ = elsewhere ? elsewhere : TRACES;
    if (!std::filesystem::is_directory(folder_))
      GTEST_SKIP() << folder_ << " is not there; TIERPILOT_TRACES names the folder of the traces";
  }
  static double gpu_hours(const Workload& workload) {
    double sum = 0;
    for (const auto& task : workload.tasks) sum += seconds(task) * task.gpu_milli / 3.6e6;
    return sum;
  }
  static void expect_sound(const Workload& workload) {
    EXPECT_TRUE(std::ranges::is_sorted(workload.tasks, {}, &Task::arrival_ns));
    for (const auto& task : workload.tasks) {
      ASSERT_GT(task.operations, 0);
      ASSERT_LT(task.user, workload.users.size());
      ASSERT_LE(task.first_use + task.use_count, workload.uses.size());
    }
    for (const auto& use : workload.uses) ASSERT_LT(use.dataset, workload.datasets.size());
  }
  std::filesystem::path folder_;
};

TEST_F(RealTraces, Philly) {
  const auto trace = read_philly(folder_ / "philly_until_2017-10-26.csv", TraceOptions{});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->summary.rows, 48'280u);
  EXPECT_TRUE(trace->summary.skipped.empty()) << trace->summary.first_skipped;
  EXPECT_EQ(trace->workload.tasks.size(), 48'280u);
  EXPECT_EQ(trace->workload.users.size(), 12u);
  EXPECT_EQ(trace->summary.span_ns / 1'000'000'000 / 86400, 51);
  EXPECT_GT(trace->workload.datasets.size(), 1000u);
  expect_sound(trace->workload);
}

TEST_F(RealTraces, PhillySplitKeepsTheGpuHours) {
  const auto path = folder_ / "philly_until_2017-10-26.csv";
  const auto whole = read_philly(path, TraceOptions{});
  const auto split = read_philly(path, TraceOptions{.max_gpus = 4});
  ASSERT_TRUE(whole && split);
  EXPECT_GT(split->workload.tasks.size(), whole->workload.tasks.size());
  EXPECT_NEAR(gpu_hours(split->workload), gpu_hours(whole->workload), 1e-6 * 1e6);
  expect_sound(split->workload);
}

TEST_F(RealTraces, Openb) {
  const auto trace = read_openb(folder_ / "openb_pod_list_default.csv",
                                folder_ / "openb_node_list_gpu_node.csv", TraceOptions{});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->nodes.size(), 1213u);
  EXPECT_EQ(trace->trace.summary.rows, 8152u);
  EXPECT_EQ(trace->trace.summary.skipped.at("never scheduled"), 897u);
  EXPECT_EQ(trace->trace.workload.tasks.size() + 897, 8152u);
  expect_sound(trace->trace.workload);
}

TEST_F(RealTraces, Lublin) {
  const auto trace = read_swf(folder_ / "lublin_256.swf", TraceOptions{.max_units = 64});
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->summary.rows, 10'000u);
  EXPECT_TRUE(trace->summary.skipped.empty()) << trace->summary.first_skipped;
  EXPECT_GT(trace->workload.tasks.size(), 10'000u);
  expect_sound(trace->workload);
}

}  // namespace
}  // namespace tierpilot::sim
