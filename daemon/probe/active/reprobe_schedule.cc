#include "daemon/probe/active/reprobe_schedule.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

namespace tierpilot {
namespace {

// Memory that a script plugs in and out all day must not be measured all day.
constexpr int64_t kMostDebt_ns = 4LL * 3600 * 1'000'000'000;

}  // namespace

ReprobeSchedule::ReprobeSchedule(Options options, const Clock& clock, LoadSource load, double cpu_s)
    : options_(options), clock_(clock), load_(std::move(load)), put_off_ns_(options.shortest_ns) {
  measured(cpu_s);
}

bool ReprobeSchedule::due() {
  const int64_t now_ns = clock_.boot_ns();
  if (now_ns < next_ns_) return false;
  if (load_() < options_.busy) return true;
  next_ns_ = now_ns + put_off_ns_;
  put_off_ns_ = std::min(2 * put_off_ns_, options_.longest_ns);
  return false;
}

void ReprobeSchedule::measured(double cpu_s) {
  const int64_t now_ns = clock_.boot_ns();
  const auto price_ns = static_cast<int64_t>(cpu_s / options_.cpu_share * 1e9);
  debt_until_ns_ = std::max(debt_until_ns_, now_ns) + price_ns;
  next_ns_ = std::max(debt_until_ns_, now_ns + options_.shortest_ns);
  put_off_ns_ = options_.shortest_ns;
}

void ReprobeSchedule::hurry() {
  next_ns_ = std::max(clock_.boot_ns(), debt_until_ns_ - kMostDebt_ns);
  put_off_ns_ = options_.shortest_ns;
}

double load_per_cpu() {
  double load_1min = 0;
  if (getloadavg(&load_1min, 1) != 1) return 0;
  return load_1min / static_cast<double>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
}

}  // namespace tierpilot
