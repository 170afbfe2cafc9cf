// A file of bytes that is replaced whole.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

// Replaces the file atomically: a crash leaves the old one or the new one. Messages begin with the
// file's name. `mode`: who may read it, less the umask.
Status save_bytes(const std::filesystem::path& file, std::string_view bytes, mode_t mode = 0600);
// kNotFound: there is no such file; kInvalid: no plain file of at most 1 GiB.
Result<std::string> load_bytes(const std::filesystem::path& file);

}  // namespace tierpilot
