// What the kernel does with pages by itself: read and told, never changed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/sysroot.h"
#include "daemon/memory/paging/plan.h"

namespace tierpilot {

// Nothing: this kernel has no such setting, or it may not be read.
struct KernelSettings {
  std::optional<int64_t> numa_balancing;     // bit 0: towards the CPUs, bit 1: tiering
  std::optional<bool> demotion_enabled;      // reclaim demotes instead of swapping
  std::optional<int64_t> zone_reclaim_mode;  // bit 0: reclaims a node before it uses another one
  std::optional<int64_t> kdamonds;           // whose, the kernel does not tell
  std::optional<bool> ksm_running;
  // move_pages() finds no page whose next access will be a NUMA hint fault: Linux 6.1 to 6.4, whose
  // follow_page() takes it for not there.
  bool hides_hinted_pages = false;
};

KernelSettings read_kernel_settings(const Sysroot& sysroot);

// What works against placement by heat in `mode`, a sentence each with what to do.
// `own_kdamonds`: the tracker's, which are no conflict.
std::vector<std::string> find_conflicts(const KernelSettings& settings, PagingMode mode,
                                        bool own_kdamonds);

}  // namespace tierpilot
