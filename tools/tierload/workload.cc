#include "tools/tierload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/random.h"

namespace tierpilot::tierload {
namespace {

struct Mix {
  std::string_view kernel;
  uint32_t passes;  // at work = 1
  uint64_t size;
  double share;  // of the tasks that only read
};

// Of each kind some that are bound by memory and some that are bound by computing.
constexpr std::array kReaders{Mix{"sum", 16, 0, 0.3}, Mix{"norm", 16, 0, 0.25},
                              Mix{"gather", 2, 1 << 20, 0.25}, Mix{"matmul", 1, 96, 0.15},
                              Mix{"sort", 1, 1 << 12, 0.05}};
constexpr Mix kUpdate{"update", 8, 0, 1}, kCopy{"copy", 4, 0, 1};

Mix draw_reader(SeededRandom& random) {
  double at = random.unit();
  for (const Mix& mix : kReaders)
    if ((at -= mix.share) < 0) return mix;
  return kReaders.front();
}

constexpr uint64_t kLeastDatasetBytes = 8ull * 96 * 96;  // one pair of matmul's matrices

Status check(const WorkloadOptions& o) {
  const auto refuse = [](std::string what) {
    return fail(ErrorCode::kInvalid, "workload: " + what);
  };
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  if (o.tasks == 0 || o.tasks > 10'000'000) return refuse("tasks must be 1 to 10,000,000");
  if (o.datasets == 0 || o.datasets > 1'000'000) return refuse("datasets must be 1 to 1,000,000");
  if (o.min_dataset_bytes < kLeastDatasetBytes)
    return refuse(
        fmt::format("the smallest dataset must have {} bytes or more", kLeastDatasetBytes));
  if (o.max_dataset_bytes < o.min_dataset_bytes || o.max_dataset_bytes > 1ull << 44)
    return refuse("the largest dataset must be no smaller than the smallest and at most 16 TiB");
  if (!(o.zipf_exponent >= 0 && o.zipf_exponent <= 10))
    return refuse("Zipf exponent must be 0 to 10");
  if (!share(o.write_share)) return refuse("write share must be 0 to 1");
  if (!share(o.second_share)) return refuse("second-dataset share must be 0 to 1");
  if (!(o.arrivals_per_s > 0 && o.arrivals_per_s <= 1e6))
    return refuse("arrivals per second must be over 0 and at most 1,000,000");
  if (!(o.work > 0 && o.work <= 100)) return refuse("work must be over 0 and at most 100");
  if (o.prefix.empty()) return refuse("the prefix of dataset names must not be empty");
  return {};
}

uint64_t bytes_for(const WorkloadOptions& options, SeededRandom& random) {
  const double bytes = random.log_uniform(static_cast<double>(options.min_dataset_bytes),
                                          static_cast<double>(options.max_dataset_bytes));
  return std::clamp(static_cast<uint64_t>(bytes) / 4096 * 4096, options.min_dataset_bytes,
                    options.max_dataset_bytes);
}

// What the task does with its datasets, and what that will cost.
void choose_kernel(const WorkloadOptions& options, const std::vector<uint64_t>& bytes,
                   SeededRandom& random, TaskPlan& task) {
  const bool writes = random.chance(options.write_share);
  const Mix mix = !writes ? draw_reader(random) : bytes.size() > 1 ? kCopy : kUpdate;
  task.kernel = mix.kernel;
  task.parameters = {static_cast<uint32_t>(std::max(1.0, std::round(mix.passes * options.work))),
                     mix.size, random.bits() >> 32};
  task.datasets.back().write = writes;
  const Kernel& kernel = **find_kernel(task.kernel);
  const bool only_last = kernel.access == Kernel::Access::kReadThenWrite;
  for (size_t i = only_last ? bytes.size() - 1 : 0; i < bytes.size(); ++i) {
    const Operations some = estimate_operations(kernel, bytes[i], task.parameters);
    task.operations.floats += some.floats;
    task.operations.ints += some.ints;
  }
}

}  // namespace

Result<Workload> make_workload(const WorkloadOptions& options) {
  if (auto status = check(options); !status) return tl::unexpected(status.error());
  SeededRandom random(options.seed);
  Workload workload;
  for (uint32_t i = 0; i < options.datasets; ++i)
    workload.datasets.push_back({fmt::format("{}-{:03}", options.prefix, i),
                                 bytes_for(options, random), random.bits() >> 32});
  const Zipf popularity(options.datasets, options.zipf_exponent);
  double arrival_ms = 0;
  for (uint32_t i = 0; i < options.tasks; ++i) {
    TaskPlan task{.name = fmt::format("task-{:05}", i),
                  .units = 1,
                  .memory_bytes = options.task_memory_bytes};
    arrival_ms += random.exponential(1000 / options.arrivals_per_s);
    task.arrival_ms = static_cast<int64_t>(arrival_ms);
    const size_t first = popularity.draw(random), second = popularity.draw(random);
    const bool two = random.chance(options.second_share) && first != second;
    std::vector<uint64_t> bytes;
    for (const size_t dataset : two ? std::vector{first, second} : std::vector{first}) {
      task.datasets.push_back({workload.datasets[dataset].name, false});
      bytes.push_back(workload.datasets[dataset].bytes);
    }
    choose_kernel(options, bytes, random, task);
    workload.tasks.push_back(std::move(task));
  }
  return workload;
}

std::vector<std::string> task_command(const TaskPlan& task, const std::string& program) {
  std::vector<std::string> command{program,
                                   "kernel",
                                   task.kernel,
                                   "--passes",
                                   std::to_string(task.parameters.passes),
                                   "--seed",
                                   std::to_string(task.parameters.seed)};
  if (task.parameters.size) {
    command.emplace_back("--size");
    command.push_back(std::to_string(task.parameters.size));
  }
  for (const auto& use : task.datasets) {
    command.emplace_back("--dataset");
    command.push_back(use.dataset);
  }
  return command;
}

nlohmann::ordered_json workload_json(const Workload& workload) {
  using nlohmann::ordered_json;
  ordered_json value{{"datasets", ordered_json::array()}, {"tasks", ordered_json::array()}};
  for (const auto& dataset : workload.datasets)
    value["datasets"].push_back(
        {{"name", dataset.name}, {"bytes", dataset.bytes}, {"seed", dataset.seed}});
  for (const auto& task : workload.tasks) {
    auto uses = ordered_json::array();
    for (const auto& use : task.datasets)
      uses.push_back({{"name", use.dataset}, {"mode", use.write ? "write" : "read"}});
    value["tasks"].push_back({{"name", task.name},
                              {"arrival_ms", task.arrival_ms},
                              {"command", task_command(task, "tierload")},
                              {"datasets", uses},
                              {"units", task.units},
                              {"memory", task.memory_bytes},
                              {"float_operations", task.operations.floats},
                              {"int_operations", task.operations.ints}});
  }
  return value;
}

}  // namespace tierpilot::tierload
