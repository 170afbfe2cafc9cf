// Why a job that waits does not start on a unit as it is: for people.
#pragma once

#include <string>

#include "policies/sharing/live/live_unit.h"

namespace tierpilot::sharing {

inline constexpr const char* kOtherKind = "a kind of unit that it cannot use";

// By its share and memory alone; empty: it fits.
std::string too_small(const LiveUnit& unit, const Share& needed);

}  // namespace tierpilot::sharing
