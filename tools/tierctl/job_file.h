// A job as an operator writes it: a JSON file with tasks that may wait for each other.
//
//   {"tasks": [{"name": "sort", "command": ["sort", "-u"], "datasets": [{"name": "genes", "mode":
//   "read"}],
//               "units": 2, "memory": "1GiB", "float_operations": 0, "int_operations": 1e9,
//               "time_limit": "30s", "env": {"LC_ALL": "C"}, "after": ["fetch"], "node": "n1",
//               "mem_tier": "interleave:1,1"}]}
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
};

// `origin` names the text in messages: "job.json:3:14: ...", "job.json: tasks[1].units: ...".
Result<std::vector<JobTask>> parse_job(std::string_view json, const std::string& origin);
// "-" reads standard input. At most 16 MiB.
Result<std::vector<JobTask>> load_job(const std::string& path);

// "genes", "genes:rw", "genes:ro"
Result<JobDataset> parse_dataset_use(std::string_view text);

}  // namespace tierpilot::tierctl
