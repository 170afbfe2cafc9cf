// What is asked for and what is given of units that can be shared: GPUs, or groups of cores.
#pragma once

#include <cstdint>
#include <vector>

namespace tierpilot::sharing {

inline constexpr uint32_t kWholeUnit = 1000;  // thousandths of a unit's compute
inline constexpr uint32_t kMostUnits = 64;    // of a node
inline constexpr uint64_t kAnyModel = ~uint64_t{0};

enum class JobClass : uint8_t { kLatencySensitive, kBestEffort };

// Of one unit.
struct Share {
  uint32_t milli = 0;         // thousandths of its compute, at most kWholeUnit
  uint64_t memory_bytes = 0;  // of its own memory; 0 where nobody counts it
  bool operator==(const Share&) const = default;
};

// Of one node: `units` units with this share of each, beside cores and memory of the host. A job of
// several units takes whole ones.
struct Request {
  uint32_t cpu_milli = 0;
  uint64_t memory_bytes = 0;
  uint32_t units = 0;
  Share share;
  uint64_t models = kAnyModel;  // bit per model of unit that will do
  bool operator==(const Request&) const = default;

  uint64_t total_milli() const { return uint64_t{units} * share.milli; }
};

// Where a request is: units by their index within the node.
struct Placement {
  uint32_t node = 0;
  std::vector<uint32_t> units;
  bool operator==(const Placement&) const = default;
};

}  // namespace tierpilot::sharing
