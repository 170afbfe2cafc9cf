// Files that a task names.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot {

// Opens a regular file for reading. `path` is hostile: absolute or from the folder on, and within
// the folder, whatever links say. kDenied: it is not.
Result<UniqueFd> open_task_file(const std::filesystem::path& folder, const std::string& path);

}  // namespace tierpilot
