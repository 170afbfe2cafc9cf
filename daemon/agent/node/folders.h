// Folders that tasks of other users must reach, and such as they must not look into.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace tierpilot::agent {

// Makes the folder where it is missing, and passable for everybody without showing what is in it.
// kDenied: one above it keeps them out; says which, and what to do.
Status let_others_pass(const std::filesystem::path& folder);
// Makes the folder where it is missing, for this process's user alone.
Status keep_to_oneself(const std::filesystem::path& folder);

}  // namespace tierpilot::agent
