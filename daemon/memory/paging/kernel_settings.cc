#include "daemon/memory/paging/kernel_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

namespace tierpilot {
namespace {

std::optional<int64_t> number(const Sysroot& sysroot, const char* path) {
  const auto value = sysroot.read_int(path);
  return value ? std::optional(*value) : std::nullopt;
}

std::optional<bool> flag(const Sysroot& sysroot, const char* path) {
  const auto text = sysroot.read(path);
  if (!text) return {};
  return *text == "true" || *text == "1";
}

// "6.1.0-56-amd64" -> {6, 1}; {0, 0} for what is no release.
std::pair<int, int> release(const Sysroot& sysroot) {
  std::pair<int, int> release{0, 0};
  const std::string text = sysroot.read("/proc/sys/kernel/osrelease").value_or("");
  const char* const end = text.data() + text.size();
  const auto [dot, error] = std::from_chars(text.data(), end, release.first);
  if (error == std::errc() && dot != end && *dot == '.')
    std::from_chars(dot + 1, end, release.second);
  return release;
}

}  // namespace

KernelSettings read_kernel_settings(const Sysroot& sysroot) {
  const auto version = release(sysroot);
  return {.numa_balancing = number(sysroot, "/proc/sys/kernel/numa_balancing"),
          .demotion_enabled = flag(sysroot, "/sys/kernel/mm/numa/demotion_enabled"),
          .zone_reclaim_mode = number(sysroot, "/proc/sys/vm/zone_reclaim_mode"),
          .kdamonds = number(sysroot, "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds"),
          .ksm_running = flag(sysroot, "/sys/kernel/mm/ksm/run"),
          .hides_hinted_pages = version >= std::pair(6, 1) && version <= std::pair(6, 4)};
}

std::vector<std::string> find_conflicts(const KernelSettings& settings, PagingMode mode,
                                        bool own_kdamonds) {
  std::vector<std::string> conflicts;
  if (mode == PagingMode::kObserve) return conflicts;
  const auto balancing = settings.numa_balancing.value_or(0);
  if (balancing & 2)
    conflicts.push_back(fmt::format(
        "kernel.numa_balancing is {}: the kernel promotes hot pages too, and may undo a demotion; "
        "set it to 0 to leave placement to Tierpilot",
        balancing));
  else if (balancing & 1)
    conflicts.push_back(fmt::format(
        "kernel.numa_balancing is {}: the kernel moves pages towards the CPUs that use them, and "
        "may undo a demotion; set it to 0 to leave placement to Tierpilot",
        balancing));
  if (balancing != 0 && settings.hides_hinted_pages)
    conflicts.push_back(fmt::format(
        "kernel.numa_balancing is {}, and this kernel (Linux 6.1 to 6.4) hides pages that wait for "
        "a NUMA hint fault from move_pages(2): cold ones are neither found nor demoted; set it to "
        "0",
        balancing));
  if (settings.demotion_enabled.value_or(false))
    conflicts.emplace_back(
        "demotion_enabled is on: under memory pressure the kernel demotes pages by its own idea of "
        "age; that helps when fast memory runs full, but hot pages may come back down");
  if (settings.zone_reclaim_mode.value_or(0) != 0)
    conflicts.push_back(fmt::format(
        "vm.zone_reclaim_mode is {}: a full fast node is reclaimed (swapped or dropped) "
        "before another node is used; 0 lets allocations go to slower memory",
        *settings.zone_reclaim_mode));
  if (settings.kdamonds.value_or(0) > 0 && !own_kdamonds)
    conflicts.push_back(
        fmt::format("{} kdamonds of somebody else: their schemes may move or reclaim pages",
                    *settings.kdamonds));
  if (settings.ksm_running.value_or(false))
    conflicts.emplace_back(
        "KSM runs: merged pages have several owners, and may not be moved for one of them");
  return conflicts;
}

}  // namespace tierpilot
