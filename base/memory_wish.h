// Which memory a task asks for, as it travels in TaskSpec.memoryTier and Assignment.memoryTier.
//
//   fast               its pages in the fastest tier, elsewhere when that is full
//   slow               in the slowest tier, likewise
//   interleave:W1,W2   pages over the fastest and the slowest tier, in this ratio
//   heap:W1,W2         what it allocates with malloc and its like, in this ratio
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

struct MemoryWish {
  enum class Kind { kNone, kFast, kSlow, kInterleave, kHeap };
  Kind kind = Kind::kNone;
  uint32_t fast_weight = 1;  // of kInterleave and kHeap; 1 to 255, as the kernel's own weights
  uint32_t slow_weight = 1;

  // All pages in one tier: it can be seen to that they stay there.
  bool is_static() const { return kind == Kind::kFast || kind == Kind::kSlow; }
};

// "" is kNone. kInvalid says what the forms are.
Result<MemoryWish> parse_memory_wish(std::string_view text);

}  // namespace tierpilot
