// What serving a task's data came to.
#pragma once

#include <cstdint>

namespace tierpilot::sim {

struct Service {
  int64_t asked_ns = 0;
  uint64_t hit_bytes = 0;
  uint64_t promoted_bytes = 0;
  uint64_t fetched_bytes = 0;
  uint64_t evicted_bytes = 0;          // left the fast tier for it
  uint64_t evicted_written_bytes = 0;  // of these, had to be written
  int64_t fetch_ns = 0;                // transferring what was fetched: without waiting
};

}  // namespace tierpilot::sim
