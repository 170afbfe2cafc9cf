// Results of the sharing suite as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "policies/sim/sharing/full_load/full_load.h"

namespace tierpilot::sharing {

// {"runs": [each], "policies": [{"policy", means over seeds, the worst seed}], "bound_runs": [of
// each seed], "bounds": [{"policy": "bound", means over seeds}]}; shares in [0, 1].
nlohmann::ordered_json full_load_json(const FullLoad& load);

}  // namespace tierpilot::sharing
