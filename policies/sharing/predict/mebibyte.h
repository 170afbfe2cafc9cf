// Predictors reckon memory in the logarithm of its mebibytes.
#pragma once

namespace tierpilot::sharing {

inline constexpr double kMib = 1 << 20;

}  // namespace tierpilot::sharing
