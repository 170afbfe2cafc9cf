// Room on a node's slower memories for tensors that programs swap out.
#pragma once

#include <cstdint>

namespace tierpilot {

// That a node offers, or a task asks for: what many of them ask for can be summed up.
inline constexpr uint64_t kMostSwapRoomBytes = uint64_t{1} << 50;
// In whole steps, so that a node can give all that it has: a program takes no less of a tier.
inline constexpr uint64_t kSwapRoomStepBytes = uint64_t{1} << 20;

}  // namespace tierpilot
