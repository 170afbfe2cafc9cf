#include "daemon/probe/active/interference.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

namespace tierpilot {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

double own_cpu_s() {
  double total = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (getrusage(who, &usage) == 0) total += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  return total;
}

}  // namespace

Interference::Interference(Sysroot sysroot)
    : sysroot_(std::move(sysroot)), ticks_(read_ticks()), own_cpu_s_(own_cpu_s()) {
  getloadavg(&load_1min_, 1);
}

std::optional<Interference::Ticks> Interference::read_ticks() const {
  const auto text = sysroot_.read("/proc/stat");
  if (!text) return std::nullopt;
  std::istringstream words(*text);
  std::string name;
  // user, nice, system, idle, iowait, irq, softirq, steal
  std::array<uint64_t, 8> ticks{};
  if (!(words >> name) || name != "cpu") return std::nullopt;
  for (auto& tick : ticks)
    if (!(words >> tick)) return std::nullopt;
  Ticks sum;
  for (const auto tick : ticks) sum.all += tick;
  sum.busy = sum.all - std::min(sum.all, ticks[3] + ticks[4]);
  return sum;
}

Surroundings Interference::surroundings() const {
  Surroundings around{.cpus = std::max(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN))),
                      .load_1min = load_1min_};
  const auto now = read_ticks();
  // Ten ticks at least: over less the kernel's clock decides.
  if (!now || !ticks_ || now->all < ticks_->all + 10 || now->busy < ticks_->busy) return around;
  const double own = (own_cpu_s() - own_cpu_s_) * static_cast<double>(sysconf(_SC_CLK_TCK));
  const double others = static_cast<double>(now->busy - ticks_->busy) - own;
  around.others_cpu_share =
      std::clamp(others / static_cast<double>(now->all - ticks_->all), 0.0, 1.0);
  return around;
}

}  // namespace tierpilot
