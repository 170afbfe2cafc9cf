// A submission as an operator writes it: a JSON file with tasks that may wait for each other.
//
//   {"tasks": [{"name": "sort", "command": ["sort", "-u"], "datasets": [{"name": "genes", "mode":
//   "read"}],
//               "units": 2, "memory": "1GiB", "float_operations": 0, "int_operations": 1e9,
//               "time_limit": "30s", "env": {"LC_ALL": "C"}, "after": ["fetch"], "node": "n1",
//               "mem_tier": "interleave:1,1", "priority": 1, "elastic": "1:4", "ranks": 4,
//               "engine": "gpu", "units_per_rank": 1, "ranks_per_node": "1:2", "estimate": "2h",
//               "max_restarts": 3, "start_within": "1m"},
//              {"command": ["train"], "share": "auto", "class": "latency-sensitive",
//               "promise": "10m", "estimate": "5m", "model_card": "card.json"},
//              {"command": ["fit"], "elastic": "1:4", "weight": 2, "measure": "accuracy:up",
//               "goal": 0.9, "deadline": "1h"}]}
//
// Only "command" is required.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/task_spec.h"

namespace tierpilot::tierctl {

inline constexpr uint32_t kMostRanks = 4096;
inline constexpr uint32_t kUsualRestarts = 3;

// A gang as an operator writes it; its other numbers stand in the task as they are.
struct GangWords {
  std::string engine = "cpu";
  uint32_t units_per_rank = 1;  // of the engine
  std::string ranks_per_node;   // "MIN:MAX", either may be left out; empty: any
  bool says_restarts = false;
};
// Puts them into the task: the units of a rank are CPU units, or GPUs with as many CPU units as the
// task asks for besides. kInvalid: what is wrong with them by themselves.
Status apply(const GangWords& words, TaskSpec& task);

// `origin` names the text in messages: "tasks.json:3:14: ...", "tasks.json: tasks[1].units: ...".
Result<std::vector<TaskSpec>> parse_submission(std::string_view json, const std::string& origin);
// "-" reads standard input. At most 16 MiB.
Result<std::vector<TaskSpec>> load_submission(const std::string& path);

// "genes", "genes:rw", "genes:ro"
Result<DatasetUse> parse_dataset_use(std::string_view text);

}  // namespace tierpilot::tierctl
