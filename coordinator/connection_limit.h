// Clients and nodes must not take the descriptors that the store needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tierpilot {

// Of the store and its log, backups, weights, metrics, what listens.
inline constexpr uint64_t kOwnDescriptors = 256;

// How many connections each of `listeners` may have: as many as are wanted, where there are so many
// descriptors. At least one.
inline size_t affordable_connections(size_t wanted, size_t listeners, uint64_t descriptors) {
  const uint64_t left = descriptors - std::min(descriptors, kOwnDescriptors);
  return std::min<size_t>(wanted, std::max<uint64_t>(left / std::max<size_t>(listeners, 1), 1));
}

// How many of those one user or node may have: others find room beside it, whatever it does.
inline size_t connections_of_one(size_t all) {
  return std::max<size_t>(all - all / 4, 1);
}

}  // namespace tierpilot
