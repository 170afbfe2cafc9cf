// What is counted of a node, and what of it a task needs.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tierpilot {

struct Resources {
  uint32_t units = 0;            // of its CPUs
  uint32_t gpus = 0;             // whole ones; shares of them are in policies/sharing/share.h
  uint64_t memory_bytes = 0;     // for tasks
  uint64_t fast_bytes = 0;       // of its fast tier for datasets: of a task, its data
  uint64_t swap_room_bytes = 0;  // of the tiers that programs swap to

  constexpr bool hold(const Resources& needed) const {
    return units >= needed.units && gpus >= needed.gpus && memory_bytes >= needed.memory_bytes &&
           fast_bytes >= needed.fast_bytes && swap_room_bytes >= needed.swap_room_bytes;
  }
  // How many of these there is room for side by side; data that all of them read is there once.
  constexpr uint64_t times(const Resources& needed) const {
    if (!hold(needed)) return 0;
    uint64_t most = UINT64_MAX;
    if (needed.units > 0) most = std::min<uint64_t>(most, units / needed.units);
    if (needed.gpus > 0) most = std::min<uint64_t>(most, gpus / needed.gpus);
    if (needed.memory_bytes > 0) most = std::min(most, memory_bytes / needed.memory_bytes);
    if (needed.swap_room_bytes > 0) most = std::min(most, swap_room_bytes / needed.swap_room_bytes);
    return most;
  }
  bool operator==(const Resources&) const = default;
};

// The most that any has of each.
constexpr Resources most_of(const Resources& a, const Resources& b) {
  return {std::max(a.units, b.units), std::max(a.gpus, b.gpus),
          std::max(a.memory_bytes, b.memory_bytes), std::max(a.fast_bytes, b.fast_bytes),
          std::max(a.swap_room_bytes, b.swap_room_bytes)};
}

}  // namespace tierpilot
