#include "daemon/memory/mover/pace.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <mutex>

namespace tierpilot {

bool SystemPacer::sleep_until(int64_t until_ns, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  // Boot time, which a condition variable does not know: it is asked again after each wait.
  while (!stop.stop_requested()) {
    const int64_t left_ns = until_ns - boot_ns();
    if (left_ns <= 0) return true;
    changed.wait_for(lock, stop, std::chrono::nanoseconds(left_ns), [] { return false; });
  }
  return false;
}

int64_t SystemPacer::thread_cpu_ns() const {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return used.tv_sec * int64_t{1'000'000'000} + used.tv_nsec;
}

int64_t RateLimiter::take(uint64_t bytes, int64_t now_ns) {
  if (bytes_per_s_ == 0) return now_ns;
  const int64_t start_ns = std::max(now_ns, free_from_ns_);
  const double took_s = static_cast<double>(bytes) / static_cast<double>(bytes_per_s_);
  free_from_ns_ = start_ns + static_cast<int64_t>(took_s * 1e9);
  return start_ns;
}

}  // namespace tierpilot
