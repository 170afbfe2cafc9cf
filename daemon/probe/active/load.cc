#include "daemon/probe/active/load.h"

#include <algorithm>

#include "daemon/probe/active/initiator.h"
#include "daemon/probe/loops/stream.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

// Some 100 us of reading: long against the clock, short against the chase that it disturbs.
constexpr size_t kChunk = 1 << 20;

}  // namespace

MemoryLoad::MemoryLoad(const std::byte* data, size_t bytes, const std::vector<int>& cpus,
                       int percent)
    : since_(SteadyClock::now()) {
  const size_t share = aligned_share(bytes, std::max<size_t>(cpus.size(), 1));
  const size_t chunk = std::min(kChunk, share);
  for (size_t i = 0; i < cpus.size(); ++i)
    threads_.emplace_back([this, mine = data + i * share, share, chunk, cpu = cpus[i], percent] {
      run_on({cpu});
      for (size_t at = 0; !stop_.load(std::memory_order_relaxed);
           at = at + 2 * chunk <= share ? at + chunk : 0) {
        const auto start = SteadyClock::now();
        read_once(mine + at, chunk);
        bytes_read_.fetch_add(chunk, std::memory_order_relaxed);
        const auto took = SteadyClock::now() - start;
        if (percent < 100) std::this_thread::sleep_for(took * (100 - percent) / percent);
      }
    });
}

MemoryLoad::~MemoryLoad() {
  stop_ = true;
}

double MemoryLoad::bytes_per_s() {
  const auto now = SteadyClock::now();
  const uint64_t total = bytes_read_.load(std::memory_order_relaxed);
  const double rate = static_cast<double>(total - bytes_seen_) /
                      std::chrono::duration<double>(now - since_).count();
  bytes_seen_ = total;
  since_ = now;
  return rate;
}

}  // namespace tierpilot
