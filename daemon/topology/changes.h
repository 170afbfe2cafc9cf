// What is different between two looks at one machine.
#pragma once

#include <string>
#include <vector>

#include "daemon/topology/topology.h"

namespace tierpilot {

// A sentence per change that matters to tiers: nodes that come, go, change size (by more than a
// 64th: balloons breathe) or CPUs; dax devices that come, go or change driver; another ranking by
// the kernel. Empty: the machine is the same. Free memory and GPUs are not looked at.
std::vector<std::string> topology_changes(const Topology& before, const Topology& after);

}  // namespace tierpilot
