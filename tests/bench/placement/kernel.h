// The kernel's own placement: switched on for a row, and what it and others did.
#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/sysroot.h"

namespace tierpilot::bench {

// kernel.numa_balancing = 2 with demotion while it lives; what was set before comes back.
class KernelTiering {
 public:
  // `fast_node`'s kswapd is made to try again, should it have given up.
  static Result<std::unique_ptr<KernelTiering>> enable(const Sysroot& sysroot, int fast_node);
  ~KernelTiering();
  KernelTiering(const KernelTiering&) = delete;

 private:
  KernelTiering(const Sysroot& sysroot, std::string balancing, std::string demotion);
  const Sysroot& sysroot_;
  const std::string balancing_, demotion_;
};

struct KernelCounters {
  uint64_t migrated_pages = 0;
  uint64_t promoted_pages = 0;  // by NUMA balancing
  uint64_t demoted_pages = 0;   // by reclaim
  double helper_cpu_s = 0;      // of kswapd, kcompactd, kdamond

  KernelCounters operator-(const KernelCounters& before) const;
};
KernelCounters read_kernel_counters(const Sysroot& sysroot);

struct CpuTimes {
  double user_s = 0, system_s = 0;
};
// Of a process or kernel thread; nothing used when it is gone.
CpuTimes cpu_times(const Sysroot& sysroot, int pid);

}  // namespace tierpilot::bench
