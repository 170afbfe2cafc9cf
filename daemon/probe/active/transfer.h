// Moves real bytes between a tier and the next slower one, both ways, and times it.
#pragma once

#include <memory>

#include "base/result.h"
#include "daemon/topology/tiers.h"

namespace tierpilot {

class Transfer {
 public:
  virtual ~Transfer() = default;
  virtual std::string method() const = 0;
  // Bytes per second from the faster tier to the slower one, and back. Called in turn, evict first.
  virtual Result<double> evict() = 0;
  virtual Result<double> promote() = 0;
};

// Two nodes: the kernel moves base pages (move_pages). A directory on either side: evicting writes
// a file there, syncs it and drops it from the page cache; promoting reads it back cold.
Result<std::unique_ptr<Transfer>> make_transfer(const TierSpec& fast, const TierSpec& slow,
                                                size_t bytes);

}  // namespace tierpilot
