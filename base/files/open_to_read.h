// Files that a user names, which may be anything: opening one never waits without end.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace tierpilot {

// `what` begins the message. A pipe is a file, as one of "<(program)"; kInvalid: nobody writes to
// it within two seconds.
Result<UniqueFd> open_to_read(const std::string& path, const std::string& what);

// All of it; kInvalid where it is larger, whatever size it says it has. At least 1 KiB are allowed.
Result<std::string> read_small_file(const std::string& path, size_t most_bytes);

}  // namespace tierpilot
