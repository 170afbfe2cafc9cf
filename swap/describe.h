// What a session knows, as JSON.
#pragma once

#include <string>
#include <string_view>

#include "swap/session.h"

namespace tierpilot::swap {

// "statistics", "tiers" or "step"; "{}" for other names.
std::string describe(Session& session, std::string_view what);

}  // namespace tierpilot::swap
