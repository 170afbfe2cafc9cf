// Whether a node can take a task: when it has nothing else to do, and now.
#pragma once

#include <cstdint>

namespace tierpilot {

// What an idle node can take, or what a task needs.
struct NodeShape {
  uint32_t units = 0;
  uint64_t memory_bytes = 0;
  uint64_t fast_budget_bytes = 0;  // of a task: the bytes of its data

  constexpr bool holds(const NodeShape& needed) const {
    return units >= needed.units && memory_bytes >= needed.memory_bytes &&
           fast_budget_bytes >= needed.fast_budget_bytes;
  }
};

// So many units are left of the node's own and of its backlog: what it may be given beyond them, so
// that data is brought in while others run. Memory and data are not set aside: tasks wait for them
// on the node.
constexpr bool has_units_left(uint64_t assigned, uint64_t units, uint64_t backlog_units,
                              uint64_t wanted = 1) {
  return assigned + wanted <= units + backlog_units;
}

}  // namespace tierpilot
