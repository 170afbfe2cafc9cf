// DAMON, the kernel's data access monitor (Documentation/admin-guide/mm/damon), watching the
// virtual addresses of processes; by way of its files or of the process that keeps them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tierpilot {

struct DamonAttrs {
  int64_t sample_us = 5'000;         // accessed bits are looked at so often, a page per region
  int64_t aggregation_us = 200'000;  // hits are counted over it; a reading waits for its end
  int64_t update_us = 1'000'000;     // new mappings are noticed so often
  int64_t min_regions = 20;
  int64_t max_regions = 300;  // bounds the kernel's work, and that of reading it out

  friend bool operator==(const DamonAttrs&, const DamonAttrs&) = default;
};

// kInvalid for what would cost the machine too much, or make a reading wait for long: looks more
// often than each millisecond, more than 1,000 regions, aggregations of more than 2.5 s.
Status check(const DamonAttrs& attrs);
// For who may not trace all: kDenied for what would make others wait for long, as the kernel serves
// one at a time: looks more often than each 5 ms, more than 300 regions, aggregations of more than
// 250 ms.
inline constexpr int64_t kPlainAggregationUs = 250'000;
Status check_plain(const DamonAttrs& attrs);

struct DamonRegion {
  uint64_t start = 0;
  uint64_t end = 0;
  uint64_t accesses = 0;  // checks of an aggregation interval that found one

  friend bool operator==(const DamonRegion&, const DamonRegion&) = default;
};

struct DamonReading {
  std::vector<DamonRegion> regions;  // those with accesses, in no order
  int64_t cpu_ns = 0;  // outside the caller's thread, since the process is watched; grows in ticks
};

// Watches one process until it is destroyed. One thread at a time.
class DamonMonitor {
 public:
  virtual ~DamonMonitor() = default;
  // Waits for the end of an aggregation. kNotFound when the process has ended, kUnavailable when
  // somebody else has taken DAMON away.
  virtual Result<DamonReading> read() = 0;
  virtual Status set_intervals(int64_t sample_us, int64_t aggregation_us) = 0;
};

// A way to DAMON. Outlives its monitors' making, not them.
class DamonAccess {
 public:
  virtual ~DamonAccess() = default;
  // As it follows "DAMON" in a sentence: "through its files".
  virtual std::string_view way() const = 0;
  // Looks, and changes nothing. kUnavailable where the kernel has none that can be used, kConflict
  // when somebody else uses it, kDenied or kUnreachable when this is no way for this process.
  virtual Status check() const = 0;
  // Takes what it needs. Again: does nothing.
  virtual Status open() = 0;
  // kExhausted when as many are watched as can be.
  virtual Result<std::unique_ptr<DamonMonitor>> watch(pid_t pid, const DamonAttrs& attrs) = 0;
};

}  // namespace tierpilot
