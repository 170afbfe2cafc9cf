// A tier that tensors are swapped to, in words: "node1=2GiB", "dir:/srv/slow=16GiB", "memory=1GiB".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

struct SwapTierWords {
  enum class Kind { kMemory, kNode, kDirectory };
  Kind kind = Kind::kMemory;  // of whichever NUMA node
  int node = -1;              // of kNode
  std::string directory;      // of kDirectory
  uint64_t bytes = 0;         // that may be used of it

  // "node1", "dir:/srv/slow", "memory"
  std::string name() const;
};

// The message names the entry that is wrong.
Result<SwapTierWords> parse_swap_tier(std::string_view entry);

}  // namespace tierpilot
