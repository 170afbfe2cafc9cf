// The topology as the JSON that tools print; unknown figures are null.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "daemon/topology/topology.h"

namespace tierpilot {

nlohmann::ordered_json topology_to_json(const Topology& topology);

}  // namespace tierpilot
