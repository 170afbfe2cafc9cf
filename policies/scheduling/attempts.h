// How often a task is tried.
#pragma once

#include <cstdint>

namespace tierpilot {

// After so many attempts that ended through no fault of its own: its node was lost, or its data
// could not be served.
constexpr bool may_try_again(uint32_t attempts, uint32_t most) {
  return attempts < most;
}

}  // namespace tierpilot
