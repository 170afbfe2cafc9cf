// Which of the nodes that hold a dataset another one reads it from.
#pragma once

#include <cstdint>

#include "base/random.h"

namespace tierpilot {

// Of those that serve equally well, the lowest for a task is asked first. Each task has an order of
// its own (rendezvous hashing: Thaler, Ravishankar, IEEE/ACM Transactions on Networking 6(1),
// 1998): what many need at a time is not read by all of them from the same node.
constexpr uint64_t source_rank(uint64_t task, uint32_t slot) {
  return mixed_bits(mixed_bits(task) + slot);
}

}  // namespace tierpilot
