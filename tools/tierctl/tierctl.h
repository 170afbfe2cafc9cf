// The cluster's command line as a function, so that a test can run it.
#pragma once

#include "tools/output/output.h"

namespace tierpilot::tierctl {

// Returns the exit code.
int run(int argc, const char* const* argv, Output output);

}  // namespace tierpilot::tierctl
