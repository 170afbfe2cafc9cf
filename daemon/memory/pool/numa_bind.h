// Binding the pages of tmpfs files to a NUMA node.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace tierpilot {

// The node has memory that this process may use, and at least `bytes` of it.
Status check_numa_node(int node, uint64_t bytes);

// Sets the policy of the file object itself: pages of its first `span` bytes come from `node`,
// whoever touches them first. `fd` must be open for writing. The policy lasts as long as the file.
Status bind_pages(int fd, uint64_t span, int node);

}  // namespace tierpilot
