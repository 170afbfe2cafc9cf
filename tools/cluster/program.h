// Where this project's other programs and its data are.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tierpilot {

// Looks beside the running program (installed, or in a build tree), then in PATH. kNotFound lists
// the folders it looked in.
Result<std::filesystem::path> find_program(const std::string& name);

// An installed file of PREFIX/share/tierpilot, or that of the build tree.
Result<std::filesystem::path> find_data_file(const std::string& name);

}  // namespace tierpilot
