// Short ways to write views in tests.
#pragma once

#include "policies/interface/values.h"

namespace tierpilot::testing_views {

inline NodeState node(uint32_t slot, uint32_t assigned = 0, uint64_t held_fast = 0,
                      uint64_t held_slow = 0) {
  return {.slot = slot,
          .candidate = true,
          .running = assigned,
          .assigned = assigned,
          .units = 2,
          .free_fast_bytes = 64 << 20,
          .fast_budget_bytes = 256 << 20,
          .held_fast_bytes = held_fast,
          .held_slow_bytes = held_slow};
}

inline View view_of(std::vector<NodeState> nodes, uint64_t data_bytes = 100) {
  return {{.operations = 1e9, .data_bytes = data_bytes, .writes = false, .units = 1},
          std::move(nodes)};
}

}  // namespace tierpilot::testing_views
