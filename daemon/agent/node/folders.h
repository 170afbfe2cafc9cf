// Folders that tasks of other users must reach, and such as they must not look into.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/result.h"

namespace tierpilot::agent {

// Makes the folder where it is missing, and passable for everybody without showing what is in it.
// kDenied: one above it keeps them out; says which, and what to do.
Status let_others_pass(const std::filesystem::path& folder);
// Makes the folder where it is missing, for this process's user alone.
Status keep_to_oneself(const std::filesystem::path& folder);

// Makes the folder where it is missing in a directory that others may write to, with this mode, and
// follows no link. kDenied: it belongs to another user, or its directory does, who could put
// something in its place.
Status own_folder(const std::filesystem::path& folder, mode_t mode);
// Whether others may pass through what is above the folder. kDenied as in let_others_pass().
Status passable_above(const std::filesystem::path& folder);

}  // namespace tierpilot::agent
