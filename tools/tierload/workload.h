// A seeded workload as a plain value: datasets of skewed popularity, and tasks that arrive at
// random and run tierload's kernels over them. The same options give the same workload, bit for
// bit.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "tools/tierload/kernels.h"

namespace tierpilot::tierload {

struct WorkloadOptions {
  uint64_t seed = 1;
  uint32_t tasks = 200;
  uint32_t datasets = 24;
  uint64_t min_dataset_bytes = 4 << 20;  // sizes are log-uniform between the two
  uint64_t max_dataset_bytes = 32 << 20;
  double zipf_exponent = 1.0;    // popularity of the i-th dataset is 1 / i^exponent; 0: uniform
  double write_share = 0.15;     // of the tasks
  double second_share = 0.3;     // of the tasks that use a second dataset
  double arrivals_per_s = 10.0;  // mean of the Poisson process
  double work = 1.0;             // scales the passes over the data
  uint64_t task_memory_bytes = 0;
  std::string prefix = "load";  // of dataset names
};

struct DatasetPlan {
  std::string name;
  uint64_t bytes;
  uint64_t seed;  // of its random bytes
};

struct DatasetUsePlan {
  std::string dataset;
  bool write;
};

struct TaskPlan {
  std::string name;
  int64_t arrival_ms;  // since the start of the workload; never falls from task to task
  std::string kernel;
  KernelParameters parameters;
  std::vector<DatasetUsePlan> datasets;
  uint32_t units;
  uint64_t memory_bytes;  // 0: no limit asked for
  Operations operations;  // estimated before it runs
};

struct Workload {
  std::vector<DatasetPlan> datasets;
  std::vector<TaskPlan> tasks;
};

// kInvalid names the option that is out of range.
Result<Workload> make_workload(const WorkloadOptions& options);

// The command line of a task: `program` kernel NAME --passes ... --dataset ...
std::vector<std::string> task_command(const TaskPlan& task, const std::string& program);

nlohmann::ordered_json workload_json(const Workload& workload);

}  // namespace tierpilot::tierload
