// A file's name that a power cut does not take back.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace tierpilot {

// Renames, and has the new name on disk when it returns. What the file says has to be there before.
Status rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tierpilot
