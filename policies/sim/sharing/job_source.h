// Jobs of a trace as shares in time are tried on them: what the trace tells of each, and nothing
// else.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/sharing/pods.h"

namespace tierpilot::sharing {

struct SourceJob {
  double arrival_s = 0;
  double run_s = 0;
  uint32_t units = 1;
  uint32_t asked_milli = kWholeUnit;  // of each
  std::optional<JobClass> job_class;  // where the trace tells it
  uint64_t models = kAnyModel;        // bit per model of unit that will do
};

struct JobSource {
  std::string name;
  std::vector<SourceJob> jobs;  // by arrival
  std::vector<std::string> models;
  std::vector<uint8_t> units;  // of its nodes, each by its model; empty: the trace tells none
  std::map<std::string, uint64_t> skipped;  // rows by the reason
  std::string first_skipped;                // of those that could not be read, with file and line
};

// Pods that ask for no GPU, never ran, or could run on none of the nodes are counted as skipped.
// kInvalid where none is left.
Result<JobSource> jobs_of_pods(const PodTrace& trace, std::string name);

// A trace like Philly's (policies/sim/trace/readers.h): arrival, run time and GPUs.
Result<JobSource> read_timed_jobs(const std::filesystem::path& path, std::string name);

}  // namespace tierpilot::sharing
