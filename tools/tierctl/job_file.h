// A job as an operator writes it: a JSON file with tasks that may wait for each other.
//
//   {"tasks": [{"name": "sort", "command": ["sort", "-u"], "datasets": [{"name": "genes", "mode":
//   "read"}],
//               "units": 2, "memory": "1GiB", "float_operations": 0, "int_operations": 1e9,
//               "time_limit": "30s", "env": {"LC_ALL": "C"}, "after": ["fetch"], "node": "n1",
//               "mem_tier": "interleave:1,1", "priority": 1, "ranks": 4, "engine": "gpu",
//               "units_per_rank": 1, "ranks_per_node": "1:2", "estimate": "2h", "max_restarts": 3,
//               "start_within": "1m"}]}
//
// Only "command" is required.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tierpilot::tierctl {

struct JobDataset {
  std::string name;
  bool write = false;
};

// Of a task of several processes.
struct JobGang {
  static constexpr uint32_t kMostRanks = 4096;
  uint32_t ranks = 0;  // 0: it is one process
  std::string engine = "cpu";
  uint32_t units_per_rank = 1;  // of the engine
  std::string ranks_per_node;   // "MIN:MAX", either may be left out; empty: any
  int64_t estimate_ms = 0;
  uint32_t max_restarts = 3;
  int64_t start_within_ms = 0;

  // kInvalid says how it is written. 0: any.
  Result<std::pair<uint32_t, uint32_t>> per_node() const;
};

struct JobTask {
  std::string name;
  std::vector<std::string> command;
  std::vector<JobDataset> datasets;
  uint32_t units = 1;
  uint64_t memory_bytes = 0;  // 0: no limit asked for
  double float_operations = 0;
  double int_operations = 0;
  int64_t time_limit_ms = 0;  // 0: none
  std::vector<std::pair<std::string, std::string>> env;
  std::vector<std::string> after;
  std::string node;         // empty: the policy chooses
  std::string memory_tier;  // see base/memory_wish.h; empty: placed by heat
  int32_t priority = 0;
  JobGang gang;
};

// What is wrong with the gang's numbers, by themselves; empty: nothing.
std::string wrong_gang(const JobTask& task);

// `origin` names the text in messages: "job.json:3:14: ...", "job.json: tasks[1].units: ...".
Result<std::vector<JobTask>> parse_job(std::string_view json, const std::string& origin);
// "-" reads standard input. At most 16 MiB.
Result<std::vector<JobTask>> load_job(const std::string& path);

// "genes", "genes:rw", "genes:ro"
Result<JobDataset> parse_dataset_use(std::string_view text);

}  // namespace tierpilot::tierctl
