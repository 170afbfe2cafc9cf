// Access latency by dependent pointer chasing (the method of lmbench's lat_mem_rd): each load's
// address is the result of the load before, so nothing overlaps and no prefetcher can guess.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tierpilot {

struct ChaseOptions {
  size_t hops_per_batch = 32;  // timed together, so the clock's own cost disappears; 1 for page-ins
  size_t max_batches = 4096;
  std::chrono::milliseconds max_time{200};
};

// The stride of which no two hops meet one line.
inline constexpr size_t kCacheLineBytes = 64;

struct ChaseResult {
  // Nanoseconds per hop, one entry a batch, as (value, count).
  std::vector<std::pair<uint64_t, uint64_t>> counts;
  double mean_ns = 0;

  double p50_ns() const;
};

// One cycle through every slot of `stride` bytes in random order (Sattolo's shuffle). Each run goes
// on where the last one ended, so it meets lines that the one before did not bring into the caches.
class Chase {
 public:
  // Writes the chain into data, which must outlive it; stride is at least sizeof(void*).
  Chase(std::byte* data, size_t bytes, size_t stride, uint64_t seed);
  // At least one batch.
  ChaseResult run(const ChaseOptions& options);

 private:
  const std::byte* at_;
};

}  // namespace tierpilot
