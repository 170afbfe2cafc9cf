#include "daemon/probe/loops/chase.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "daemon/probe/loops/estimate.h"

namespace tierpilot {
namespace {

using SteadyClock = std::chrono::steady_clock;

int64_t ns_between(SteadyClock::time_point from, SteadyClock::time_point to) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(to - from).count();
}

// What two readings of the clock cost by themselves: some 25 ns, and ten times that where the clock
// is a system call. The fastest of many, so that an interrupt is not taken for it.
int64_t clock_cost_ns() {
  int64_t fastest = INT64_MAX;
  for (int i = 0; i < 64; ++i) {
    const auto start = SteadyClock::now();
    fastest = std::min(fastest, ns_between(start, SteadyClock::now()));
  }
  return fastest;
}

}  // namespace

Chase::Chase(std::byte* data, size_t bytes, size_t stride, uint64_t seed) : at_(data) {
  std::vector<uint32_t> order(bytes / stride);
  std::iota(order.begin(), order.end(), 0U);
  std::minstd_rand random(static_cast<unsigned>(seed));
  for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random() % i]);
  // order is one cycle: slot i points to slot order[i].
  for (size_t i = 0; i < order.size(); ++i)
    *reinterpret_cast<const std::byte**>(data + i * stride) = data + order[i] * stride;
}

ChaseResult Chase::run(const ChaseOptions& options) {
  std::map<uint64_t, uint64_t> counts;
  const int64_t clock_ns = clock_cost_ns();
  const auto per_batch = static_cast<int64_t>(options.hops_per_batch);
  const std::byte* at = at_;
  int64_t total_ns = 0;
  uint64_t hops = 0;
  for (size_t batch = 0; batch < options.max_batches; ++batch) {
    const auto start = SteadyClock::now();
    for (size_t i = 0; i < options.hops_per_batch; ++i)
      at = *reinterpret_cast<const std::byte* const*>(at);
    asm volatile("" : "+r"(at) : : "memory");  // the clock's own fence then waits for the last load
    const int64_t ns = std::max<int64_t>(ns_between(start, SteadyClock::now()) - clock_ns, 0);
    ++counts[static_cast<uint64_t>((ns + per_batch / 2) / per_batch)];
    total_ns += ns;
    hops += options.hops_per_batch;
    if (total_ns > std::chrono::nanoseconds(options.max_time).count()) break;
  }
  at_ = at;
  return {{counts.begin(), counts.end()},
          static_cast<double>(total_ns) / static_cast<double>(hops)};
}

double ChaseResult::p50_ns() const {
  return weighted_quantile(counts, 0.5);
}

}  // namespace tierpilot
