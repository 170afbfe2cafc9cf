#include "daemon/agent/metrics/self_cost.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "base/sysroot.h"

namespace tierpilot::agent {
namespace {

int64_t process_cpu_ns() {
  timespec ts{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
  return ts.tv_sec * 1'000'000'000LL + ts.tv_nsec;
}

}  // namespace

SelfCost::SelfCost(const Clock& clock)
    : clock_(clock), last_boot_ns_(clock.boot_ns()), last_cpu_ns_(process_cpu_ns()) {}

Result<double> SelfCost::cpu_share() {
  const int64_t now_ns = clock_.boot_ns(), cpu_ns = process_cpu_ns();
  const int64_t passed_ns = now_ns - last_boot_ns_;
  if (passed_ns <= 0)
    return fail(ErrorCode::kUnavailable, "no time has passed since the last status");
  const double share = static_cast<double>(cpu_ns - last_cpu_ns_) / static_cast<double>(passed_ns);
  last_boot_ns_ = now_ns;
  last_cpu_ns_ = cpu_ns;
  return share;
}

Result<uint64_t> SelfCost::resident_bytes() {
  auto statm = Sysroot("/").read("/proc/self/statm");
  if (!statm) return tl::unexpected(statm.error());
  unsigned long long total_pages = 0, resident_pages = 0;
  if (std::sscanf(statm->c_str(), "%llu %llu", &total_pages, &resident_pages) != 2)
    return fail(ErrorCode::kUnavailable, "/proc/self/statm: not in its documented form");
  return resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace tierpilot::agent
