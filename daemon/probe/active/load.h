// Memory traffic in the background, at a share of what the CPUs can do.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace tierpilot {

// From construction to destruction one thread per CPU reads its share of the memory over and over,
// and rests after each chunk so long that it reads `percent` (1 to 100) of the time.
class MemoryLoad {
 public:
  MemoryLoad(const std::byte* data, size_t bytes, const std::vector<int>& cpus, int percent);
  ~MemoryLoad();
  MemoryLoad(const MemoryLoad&) = delete;
  MemoryLoad& operator=(const MemoryLoad&) = delete;

  // Read by all threads since the last call.
  double bytes_per_s();

 private:
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> bytes_read_{0};
  uint64_t bytes_seen_ = 0;
  std::chrono::steady_clock::time_point since_;
  std::vector<std::jthread> threads_;
};

}  // namespace tierpilot
