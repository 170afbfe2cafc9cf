// tierctl policy train --kind gang: makes weights for the gang policy ac by simulation.
#pragma once

#include <string>

#include "tools/lab/command.h"

namespace tierpilot::lab {

// `output`: the weights' file. `trace`: half of the jobs come from its first half; may be empty.
int train_gang(const Output& output, const std::string& config, const std::string& weights,
               const std::string& trace);

}  // namespace tierpilot::lab
