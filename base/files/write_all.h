// All of some bytes into a file or a pipe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

// `name` begins the message of a failure, after which a part may have been written.
Status write_all(int fd, std::string_view bytes, const std::string& name);

}  // namespace tierpilot
