#include "tools/demo/cpu_time.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "base/clock.h"

namespace tierpilot::demo {

std::optional<CpuTime> CpuTime::now() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  double user = 0, nice = 0, system = 0, idle = 0, iowait = 0;
  if (!(stat >> cpu >> user >> nice >> system >> idle >> iowait) || cpu != "cpu")
    return std::nullopt;
  CpuTime time;
  time.all_s = static_cast<double>(system_clock().boot_ns()) * 1e-9 *
               static_cast<double>(sysconf(_SC_NPROCESSORS_ONLN));
  time.busy_s = time.all_s - (idle + iowait) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return time;
}

std::optional<double> busy_share(const std::optional<CpuTime>& before,
                                 const std::optional<CpuTime>& after) {
  if (!before || !after || after->all_s <= before->all_s) return std::nullopt;
  return std::clamp((after->busy_s - before->busy_s) / (after->all_s - before->all_s), 0.0, 1.0);
}

}  // namespace tierpilot::demo
