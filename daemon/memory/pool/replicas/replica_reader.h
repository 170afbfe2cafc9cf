// What is here, for others to know and to read.
#pragma once

#include <span>
#include <vector>

#include "daemon/memory/pool/replicas/holdings.h"

namespace tierpilot {

class ReplicaReader {
 public:
  explicit ReplicaReader(Holdings& holdings) : holdings_(holdings) {}

  // Blocks shortly. An open file survives eviction, so the bytes are right whatever happens. 0 at
  // the end; kNotFound: nothing is here.
  Result<size_t> read(const DatasetId& id, uint64_t offset, std::span<std::byte> into) const;
  std::vector<ReplicaChange> replicas() const;
  PoolUsage usage() const;  // requests that wait are left to the caller

 private:
  Holdings& holdings_;
};

}  // namespace tierpilot
