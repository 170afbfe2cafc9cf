// The observation of S1: six features of a request and of the nodes, as a fixed vector of floats.
#pragma once

#include <bitset>
#include <cstddef>
#include <vector>

#include "policies/interface/values.h"

namespace tierpilot {

inline constexpr size_t kSlots = 128;
using SlotMask = std::bitset<kSlots>;

// Layout of Observation::values; per-node features have one element per slot, 0 where no node is.
//   u  engine utilisation: log2(1 + assigned / units) / 2       (1 = three tasks queue per unit)
//   c  free fast memory:   log2(1 + pages) / 20                 (1 = 4 GiB)
//   o  overlap of the request's data with what the node holds: fast share + slow_share * slow share
//   f  operations:         log10(1 + operations) / 12           (1 = 10^12)
//   s  size of the data:   log2(1 + pages) / 20
//   t  0 read, 1 write
// Logarithms bring bytes and operations of very different tasks into one range near [0, 1].
struct ObservationLayout {
  static constexpr size_t kUtilisation = 0;
  static constexpr size_t kFreeFast = kSlots;
  static constexpr size_t kOverlap = 2 * kSlots;
  static constexpr size_t kOperations = 3 * kSlots;
  static constexpr size_t kDataSize = kOperations + 1;
  static constexpr size_t kWrites = kOperations + 2;
  static constexpr size_t kSize = kOperations + 3;
};

struct Observation {
  std::vector<float> values;  // ObservationLayout::kSize finite floats
  SlotMask present;
  SlotMask candidates;
  // All nodes have as many units and as large a fast budget: their slots may be relabelled.
  bool exchangeable = false;

  bool operator==(const Observation&) const = default;
};

struct FeatureSettings {
  // What data in the node's slow tier counts beside data in its fast one. S1 counts only local
  // (fast) data; a promotion is still cheaper than a fetch from another machine.
  double slow_share = 0.25;
  size_t slots = kSlots;  // how many of them may have a node
};

// Nodes whose slot is not below `slots` are left out.
Observation observe(const View& view, const FeatureSettings& settings = {});

}  // namespace tierpilot
