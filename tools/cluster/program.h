// Where this project's other programs are.
#pragma once

#include <filesystem>
#include <string>

#include "base/data_file.h"
#include "base/result.h"

namespace tierpilot {

// Looks beside the running program (installed, or in a build tree), then in PATH. kNotFound says
// where the running program is.
Result<std::filesystem::path> find_program(const std::string& name);

}  // namespace tierpilot
