// The fake machines under tests/sysroots.
#pragma once

#include <string>

#include "daemon/topology/topology.h"

namespace tierpilot {

inline Result<Topology> discover_fake(const std::string& machine, std::string nvml_library = "") {
  return discover_topology(Sysroot(std::string(SYSROOTS "/") + machine),
                           {.nvml_library = std::move(nvml_library)});
}

}  // namespace tierpilot
