#include "coordinator/core/sharing/pace_windows.h"

namespace tierpilot {

std::optional<double> PaceWindows::add(double now_s, const JobPoint& report) {
  if (!report.says_something()) {
    used_ns_ = report.cpu_ns;
    return std::nullopt;
  }
  const uint64_t used_ns = tells_use_ ? report.cpu_ns : used_ns_;
  if (report.iteration == 0 || used_ns == 0) return std::nullopt;
  const bool begins = !from_s_ || report.iteration < from_iteration_ || used_ns < from_used_ns_;
  if (!begins && (now_s - *from_s_ < kLeast_s || report.iteration == from_iteration_ ||
                  used_ns == from_used_ns_))
    return std::nullopt;
  std::optional<double> pace;
  if (!begins)
    pace = static_cast<double>(report.iteration - from_iteration_) /
           (static_cast<double>(used_ns - from_used_ns_) / 1e9);
  from_s_ = now_s;
  from_iteration_ = report.iteration;
  from_used_ns_ = used_ns;
  return pace;
}

}  // namespace tierpilot
