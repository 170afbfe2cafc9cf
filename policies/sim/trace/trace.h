// What all trace readers share: options in, a workload and an account of what was read out.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/model/dataset_model.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

struct TraceOptions {
  // The part to take, by arrival, counted from the trace's first task.
  int64_t from_ns = 0;
  int64_t until_ns = std::numeric_limits<int64_t>::max();
  uint64_t max_tasks = std::numeric_limits<uint64_t>::max();
  double rate = 1;  // arrivals come this many times as fast: the usual way to set a load
  // A task that asks for more than a node has would never run: it becomes several that arrive
  // together and share its data, of which the first writes. 0: no limit.
  uint32_t max_units = 0;
  uint32_t max_gpus = 0;
  bool wide_are_gangs = false;  // those several are ranks of a gang, which run together
  uint32_t units_per_gpu = 4;   // of traces that tell GPUs only
  // For traces that tell nothing of data; without it such tasks need none.
  std::optional<DatasetModel> datasets = DatasetModel{};
};

struct TraceSummary {
  std::string format;                       // "philly", "openb", "swf", "history"
  uint64_t rows = 0;                        // without headers, comments and empty lines
  std::map<std::string, uint64_t> skipped;  // rows by the reason why they are no task
  std::string first_skipped;                // the first such row: "FILE:LINE: what and why"
  uint64_t tasks = 0;
  int64_t span_ns = 0;               // first to last arrival, as they stand in the file
  std::vector<std::string> derived;  // what is not in the file and where it is from instead
};

struct Trace {
  Workload workload;
  TraceSummary summary;
};

}  // namespace tierpilot::sim
