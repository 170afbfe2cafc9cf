#pragma once
#include <optional>

namespace tierpilot::demo {

// Of all CPUs of this machine since it started. By the idle time, which kernels that stop their
// tick when idle measure: who is busy they only sample, a hundred times a second.
struct CpuTime {
  double all_s = 0;
  double busy_s = 0;

  // Nothing where the kernel does not say.
  static std::optional<CpuTime> now();
};

// What was busy between the two, from 0 to 1.
std::optional<double> busy_share(const std::optional<CpuTime>& before,
                                 const std::optional<CpuTime>& after);

}  // namespace tierpilot::demo
