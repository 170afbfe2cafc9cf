// The environment a task starts with.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "daemon/agent/node/model.h"

namespace tierpilot::agent {

// kInvalid when two of the datasets would have the same variable.
Status check_dataset_env(const std::vector<ServeItem>& datasets);

// Sorted by name. The node's own variables win over the task's, and nothing of the daemon's
// environment is passed on.
std::vector<std::pair<std::string, std::string>> task_environment(
    const Assignment& assignment, const std::vector<ServedItem>& datasets,
    const std::vector<int>& cpus, const std::string& node, const std::filesystem::path& work_dir);

}  // namespace tierpilot::agent
