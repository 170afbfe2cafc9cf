// How often a task is tried.
#pragma once

#include <cstdint>

namespace tierpilot {

// Attempts of a task that ended with its node do not count, so often: it may be what kills nodes.
inline constexpr uint32_t kMostForgiven = 16;

// After so many attempts that count.
constexpr bool may_try_again(uint32_t attempts, uint32_t most) {
  return attempts < most;
}

}  // namespace tierpilot
