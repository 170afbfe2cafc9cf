// Ends of attempts that the node itself makes up, and whether it is to blame.
#pragma once

#include <string>

#include "base/result.h"
#include "daemon/agent/node/model.h"

namespace tierpilot::agent {

ExitReport exit_of(TaskEnd how, std::string reason);

// Whatever repeating it, here or elsewhere, may mend.
bool is_this_nodes(const Error& error);
// Of what a task wrote: that it left no file of its own, or not of its size, is its own doing.
bool is_this_nodes_disk(const Error& error);

// Its data could not be served.
ExitReport data_failure(const Error& error);

}  // namespace tierpilot::agent
