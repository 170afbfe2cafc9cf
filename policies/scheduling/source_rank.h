// Which of the nodes that hold a dataset another one reads it from.
#pragma once

#include <compare>
#include <cstdint>

#include "base/random.h"

namespace tierpilot {

// The lowest is asked first. Those that have it in fast memory answer fastest. Of those that serve
// equally well each task has an order of its own (rendezvous hashing: Thaler, Ravishankar, IEEE/ACM
// Transactions on Networking 6(1), 1998): what many need at a time is not read by all of them from
// the same node.
struct SourceRank {
  bool slow = false;
  uint64_t mixed = 0;
  constexpr auto operator<=>(const SourceRank&) const = default;
};

constexpr SourceRank source_rank(uint64_t task, uint32_t slot, bool in_fast) {
  return {!in_fast, mixed_bits(mixed_bits(task) + slot)};
}

}  // namespace tierpilot
