// What a node can run at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.h"
#include "daemon/agent/tasks/attempts.h"
#include "daemon/agent/tasks/unit_shares.h"

namespace tierpilot::agent {

struct NodeLimits {
  std::vector<int> cpus;
  uint32_t units = 1;
  uint64_t memory_bytes = UINT64_MAX;
  uint64_t swap_room_bytes = 0;
  std::vector<SharedUnit> shared_units{};  // beside `units`
  size_t max_live = 4096;                  // attempts that have not ended
  size_t max_ended = 10000;                // remembered ones; the oldest go first
};

// kInvalid where no node could, kExhausted where this one cannot.
Status check_admissible(const Assignment& assignment, const NodeLimits& limits,
                        const Attempts& attempts);

}  // namespace tierpilot::agent
