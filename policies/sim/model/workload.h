// What a simulated cluster is asked to do: plain values, made by a generator or read from a trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tierpilot::sim {

// Traces give run times, policies see operations: a trace's task has duration * this many.
inline constexpr double kReferenceOperationsPerSecond = 1e9;

// The end of virtual time, 126 years; a simulation refuses tasks that arrive later.
inline constexpr double kLastArrivalNs = 4e18;

inline constexpr uint16_t kAnyGpuType = UINT16_MAX;

struct Dataset {
  uint64_t bytes = 0;
};

struct DatasetUse {
  uint32_t dataset = 0;  // index into Workload::datasets
  bool write = false;
};

inline constexpr uint32_t kNoGang = UINT32_MAX;

struct Task {
  int64_t arrival_ns = 0;
  double operations = 0;  // of each of its units; the run time follows from the node's speed
  double declared_operations = -1;  // what it says of that, for policies; below 0: the truth
  uint64_t memory_bytes = 0;        // private memory while it runs
  uint32_t units = 1;               // compute units while it runs
  uint32_t gpu_milli = 0;           // thousandths of a GPU; above 1000 only whole GPUs
  uint16_t gpu_type = kAnyGpuType;  // index into Workload::gpu_types
  uint32_t user = 0;                // index into Workload::users
  uint32_t first_use = 0;           // its datasets: uses[first_use, first_use + use_count)
  uint32_t use_count = 0;
  uint32_t gang = kNoGang;  // index into Workload::gangs: it is a rank of that

  double told_operations() const {
    return declared_operations < 0 ? operations : declared_operations;
  }
};

// Tasks that are placed at once or not at all, begin together when the last of them can, and end
// together: tasks[first, first + ranks), which need the same and arrive at once. The first may
// write, the others only read.
struct Gang {
  uint32_t first = 0;
  uint32_t ranks = 0;
};

struct Workload {
  std::string name;
  std::vector<Dataset> datasets;
  std::vector<DatasetUse> uses;
  std::vector<Task> tasks;  // by arrival
  std::vector<Gang> gangs;
  std::vector<std::string> users;
  std::vector<std::string> gpu_types;

  std::span<const DatasetUse> uses_of(const Task& task) const {
    return {uses.data() + task.first_use, task.use_count};
  }
  // A gang counts as one.
  size_t jobs() const {
    size_t jobs = tasks.size();
    for (const Gang& gang : gangs) jobs -= gang.ranks - 1;
    return jobs;
  }
};

}  // namespace tierpilot::sim
