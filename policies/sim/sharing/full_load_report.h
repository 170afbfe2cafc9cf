// Results of the sharing suite as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "policies/sim/sharing/full_load.h"

namespace tierpilot::sharing {

// {"runs": [each], "policies": [{"policy", means over seeds, the worst seed}]}; shares in [0, 1].
nlohmann::ordered_json full_load_json(const std::vector<FullLoadRun>& runs);

}  // namespace tierpilot::sharing
