// What a tracker sees of a process's memory, and where that memory is.
#pragma once

#include <cstdint>

namespace tierpilot {

inline constexpr uint64_t kBasePageBytes = 4096;
inline constexpr uint64_t kHugePageBytes = 2 << 20;

// Accesses to the pages of [start, end), all alike. What no sample covers was not accessed.
struct AccessSample {
  uint64_t start = 0;
  uint64_t end = 0;
  // A lower bound: most trackers count at most one access per page and check.
  float accesses_per_page_s = 0;
};

// A stretch of a process's memory that consists of pages of one size.
struct TrackedRange {
  uint64_t start = 0;  // multiples of page_bytes
  uint64_t end = 0;
  uint32_t page_bytes = kBasePageBytes;  // a power of two

  uint64_t bytes() const { return end - start; }
};

}  // namespace tierpilot
