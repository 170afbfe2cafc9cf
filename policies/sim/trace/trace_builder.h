// Turns the rows of a trace, as they come, into a Trace.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>

#include "policies/sim/trace/trace.h"

namespace tierpilot::sim {

class TraceBuilder {
 public:
  TraceBuilder(std::string format, const std::filesystem::path& path, const TraceOptions& options);

  uint32_t user(std::string_view name);  // its index, from now on
  Result<uint16_t> gpu_type(std::string_view name);
  uint32_t add_dataset(uint64_t bytes);
  // `task` with its arrival as it stands in the file, in any order, and its uses of datasets.
  void add(Task task, const std::vector<DatasetUse>& uses = {});
  // Of a task that has so many ranks already, each of which needs what it says.
  void add_gang(Task task, uint32_t ranks, const std::vector<DatasetUse>& uses);
  // Counts a row that is no task; `detail` says what is wrong with it.
  void skip(std::string_view reason, std::string_view place, std::string_view detail);
  void derived(std::string what) { summary_.derived.push_back(std::move(what)); }

  // kInvalid where no task is left.
  Result<Trace> finish() &&;

 private:
  void cut();      // sorts, cuts out the part asked for and scales the arrivals
  Status split();  // tasks that are too wide, and gangs into their ranks
  void add_parts(const Task& task, uint32_t parts, bool is_gang);

  const TraceOptions& options_;
  std::string path_;
  Workload workload_;
  TraceSummary summary_;
  std::unordered_map<std::string, uint32_t> users_;
  std::unordered_map<std::string, uint16_t> gpu_types_;
};

// Bounds that all readers hold cells against.
inline constexpr double kMaxDurationSeconds = 3650 * 86400.0;
inline constexpr double kMaxWidth = 1e6;  // units or GPUs of a task

// The first of these that is wrong with a row, and the text for it.
struct Fault {
  std::string reason;
  std::string detail;
};
// Whether `cell` is a number within [min, max]; else `fault` is set, if it is not set yet.
double number_or_fault(std::string_view column, std::string_view cell, double min, double max,
                       std::optional<Fault>& fault);
int64_t time_or_fault(std::string_view column, std::string_view cell, std::optional<Fault>& fault);

}  // namespace tierpilot::sim
