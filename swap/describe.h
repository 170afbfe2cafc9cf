// What a session knows, as JSON.
#pragma once

#include <string>
#include <string_view>

#include "swap/session.h"

namespace tierpilot::swap {

// "statistics", "tiers" or "step"; "{}" for other names. `plans_refused`: why kept plans are not
// used, or empty.
std::string describe(Session& session, std::string_view plans_refused, std::string_view what);

}  // namespace tierpilot::swap
