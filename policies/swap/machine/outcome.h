// What a replay came to.
#pragma once

#include <cstdint>
#include <string>

namespace tierpilot::swap {

struct Counts {
  int64_t evictions = 0;       // storages that left without a copy
  int64_t recomputations = 0;  // operators run again
  int64_t recomputed_ns = 0;
  int64_t swaps_out = 0, swaps_in = 0;
  int64_t bytes_out = 0, bytes_in = 0;
  int64_t stalls = 0, stall_ns = 0;  // waits for a copy
};

struct Outcome {
  bool done = false;
  std::string reason{};  // why it failed
  int64_t clock_ns = 1;
  int64_t base_time_ns = 0;
  int64_t peak_bytes = 0;
  Counts counts{};

  // Time over the time without a budget; says nothing about a replay that failed.
  double overhead() const {
    return base_time_ns > 0 ? static_cast<double>(clock_ns - 1) / static_cast<double>(base_time_ns)
                            : 1;
  }
};

}  // namespace tierpilot::swap
