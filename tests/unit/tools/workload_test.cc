#include "tools/tierload/workload.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace tierpilot::tierload {
namespace {

std::map<std::string, int> uses_of_first_dataset(const Workload& workload) {
  std::map<std::string, int> uses;
  for (const auto& task : workload.tasks) ++uses[task.datasets.front().dataset];
  return uses;
}

TEST(Workload, TheSameSeedGivesTheSameBytes) {
  WorkloadOptions options{.seed = 7, .tasks = 300};
  const auto once = workload_json(*make_workload(options)).dump();
  EXPECT_EQ(once, workload_json(*make_workload(options)).dump());
  options.seed = 8;
  EXPECT_NE(once, workload_json(*make_workload(options)).dump());
}

TEST(Workload, PopularityFollowsZipf) {
  const WorkloadOptions options{.tasks = 20'000, .datasets = 20, .zipf_exponent = 1.0};
  auto uses = uses_of_first_dataset(*make_workload(options));
  double harmonic = 0;
  for (int i = 1; i <= 20; ++i) harmonic += 1.0 / i;
  for (const int rank : {1, 2, 10}) {
    const double expected = 20'000 / (rank * harmonic);
    const std::string name =
        "load-0" + std::string(rank > 10 ? "" : "0") + std::to_string(rank - 1);
    EXPECT_NEAR(uses[name], expected, 5 * std::sqrt(expected)) << name;
  }
}

TEST(Workload, ExponentZeroIsUniform) {
  const WorkloadOptions options{.tasks = 20'000, .datasets = 10, .zipf_exponent = 0};
  for (const auto& [name, uses] : uses_of_first_dataset(*make_workload(options)))
    EXPECT_NEAR(uses, 2000, 5 * std::sqrt(2000.0)) << name;
}

TEST(Workload, ArrivalsArePoisson) {
  const auto workload = *make_workload({.tasks = 20'000, .arrivals_per_s = 50});
  EXPECT_TRUE(std::is_sorted(workload.tasks.begin(), workload.tasks.end(),
                             [](auto& a, auto& b) { return a.arrival_ms < b.arrival_ms; }));
  EXPECT_NEAR(workload.tasks.back().arrival_ms, 20'000 / 50.0 * 1000, 400'000 * 0.05);
  // In a Poisson process the count in an interval varies as much as its mean.
  std::map<int64_t, double> counts;
  for (const auto& task : workload.tasks) counts[task.arrival_ms / 1000] += 1;
  double squares = 0;
  for (const auto& [second, count] : counts) squares += (count - 50) * (count - 50);
  EXPECT_NEAR(squares / counts.size(), 50, 15);
}

TEST(Workload, SharesHold) {
  const auto workload = *make_workload({.tasks = 10'000, .write_share = 0.25, .second_share = 0});
  const auto writes = std::count_if(workload.tasks.begin(), workload.tasks.end(),
                                    [](auto& task) { return task.datasets.back().write; });
  EXPECT_NEAR(writes, 2500, 250);
  for (const auto& task : workload.tasks) EXPECT_EQ(task.datasets.size(), 1u);
}

TEST(Workload, EveryTaskCanRun) {
  const auto workload = *make_workload({.tasks = 2000, .second_share = 0.5});
  std::map<std::string, uint64_t> bytes;
  for (const auto& dataset : workload.datasets) bytes[dataset.name] = dataset.bytes;
  std::set<std::string> kernels_used;
  for (const auto& task : workload.tasks) {
    const auto kernel = find_kernel(task.kernel);
    ASSERT_TRUE(kernel);
    kernels_used.insert(task.kernel);
    EXPECT_GT(task.operations.floats + task.operations.ints, 0) << task.name;
    const bool writes = (*kernel)->access != Kernel::Access::kRead;
    EXPECT_EQ(task.datasets.back().write, writes) << task.name;
    for (const auto& use : task.datasets) EXPECT_TRUE(bytes.contains(use.dataset));
    if (task.datasets.size() == 2) {
      EXPECT_NE(task.datasets[0].dataset, task.datasets[1].dataset);
    }
  }
  EXPECT_GE(kernels_used.size(), 6u);
}

TEST(Workload, SizesStayInTheirRange) {
  const WorkloadOptions options{
      .datasets = 500, .min_dataset_bytes = 1 << 20, .max_dataset_bytes = 64 << 20};
  uint64_t low = UINT64_MAX, high = 0;
  const auto workload = *make_workload(options);
  for (const auto& dataset : workload.datasets) {
    low = std::min(low, dataset.bytes);
    high = std::max(high, dataset.bytes);
  }
  EXPECT_GE(low, options.min_dataset_bytes);
  EXPECT_LE(high, options.max_dataset_bytes);
  EXPECT_LT(low, 2u << 20);
  EXPECT_GT(high, 32u << 20);
}

TEST(Workload, CommandLinesNameTheDatasets) {
  const TaskPlan task{.name = "t",
                      .kernel = "gather",
                      .parameters = {.passes = 2, .size = 10, .seed = 3},
                      .datasets = {{"a", false}}};
  EXPECT_EQ(task_command(task, "/bin/tierload"),
            (std::vector<std::string>{"/bin/tierload", "kernel", "gather", "--passes", "2",
                                      "--seed", "3", "--size", "10", "--dataset", "a"}));
}

TEST(Workload, RefusesOptionsOutOfRange) {
  const std::pair<const char*, std::function<void(WorkloadOptions&)>> cases[] = {
      {"tasks", [](auto& o) { o.tasks = 0; }},
      {"datasets", [](auto& o) { o.datasets = 0; }},
      {"smallest dataset", [](auto& o) { o.min_dataset_bytes = 100; }},
      {"largest dataset", [](auto& o) { o.max_dataset_bytes = 1 << 20; }},
      {"Zipf", [](auto& o) { o.zipf_exponent = NAN; }},
      {"write share", [](auto& o) { o.write_share = 1.5; }},
      {"second-dataset share", [](auto& o) { o.second_share = -1; }},
      {"arrivals", [](auto& o) { o.arrivals_per_s = 0; }},
      {"work", [](auto& o) { o.work = 0; }},
      {"prefix", [](auto& o) { o.prefix.clear(); }},
  };
  for (const auto& [cause, spoil] : cases) {
    WorkloadOptions options;
    spoil(options);
    const auto workload = make_workload(options);
    ASSERT_FALSE(workload) << cause;
    EXPECT_NE(workload.error().message.find(cause), std::string::npos) << workload.error().message;
  }
}

}  // namespace
}  // namespace tierpilot::tierload
