// Whether a command lets PYTHONPATH bring something into the Python program that it runs.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tierpilot {

// kInvalid, with the option that is in the way: "python3 -E" and "-I". Of what is no Python nothing
// is said.
Status reads_pythonpath(const std::vector<std::string>& command);

}  // namespace tierpilot
