// Clients and nodes must not take the descriptors that the store needs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tierpilot {

// Of the store and its log, backups, weights, metrics, what listens.
inline constexpr uint64_t kOwnDescriptors = 256;

// How many connections may wait for their TLS handshake beside so many that are open.
inline size_t handshakes_beside(size_t connections) {
  return std::clamp<size_t>(connections / 8, 1, 1'024);
}

// How many connections each of `listeners` may have: as many as are wanted, where there are so many
// descriptors, also for those that wait for their handshake. At least one.
inline size_t affordable_connections(size_t wanted, size_t listeners, uint64_t descriptors) {
  const uint64_t left = descriptors - std::min(descriptors, kOwnDescriptors);
  const uint64_t each = left / std::max<size_t>(listeners, 1);
  const uint64_t open = each - std::min<uint64_t>(each, handshakes_beside(each));
  return std::min<size_t>(wanted, std::max<uint64_t>(open, 1));
}

// How many of those one user or node may have: others find room beside it, whatever it does.
inline size_t connections_of_one(size_t all) {
  return std::max<size_t>(all - all / 4, 1);
}

}  // namespace tierpilot
