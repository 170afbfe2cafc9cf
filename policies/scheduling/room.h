// Whether a node can be given a task now. Whether it ever could: model/resources.h.
#pragma once

#include <cstdint>

namespace tierpilot {

// So many units are left of the node's own and of its backlog: what it may be given beyond them, so
// that data is brought in while others run. Memory and data are not set aside: tasks wait for them
// on the node.
constexpr bool has_units_left(uint64_t assigned, uint64_t units, uint64_t backlog_units,
                              uint64_t wanted = 1) {
  return assigned + wanted <= units + backlog_units;
}

}  // namespace tierpilot
