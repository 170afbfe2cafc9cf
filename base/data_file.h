// Where this project's data files are.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tierpilot {

// Of the running program; empty where the kernel does not tell.
std::filesystem::path own_folder();

// An installed file of PREFIX/share/tierpilot, or that of the build tree: beside the running
// program. kNotFound lists the folders it looked in.
Result<std::filesystem::path> find_data_file(const std::string& name);

}  // namespace tierpilot
