// A dataset on a node.
#pragma once

#include <cstdint>

#include "base/eviction_order.h"

namespace tierpilot::sim {

inline constexpr uint32_t kNone = UINT32_MAX;

enum class ServeHow : uint8_t { kHit, kPromotion, kFetch };

// One version of a dataset on one node; `busy` while a transfer owns its files.
struct Replica : TierReplica {
  uint32_t dataset = 0;
  uint32_t node = kNone;
  uint32_t version = 0;
  uint32_t holder = kNone;            // place in the list of holders
  ServeHow arrived = ServeHow::kHit;  // how it last came into the fast tier
  int64_t arrived_ns = 0;             // how long that took
};

}  // namespace tierpilot::sim
