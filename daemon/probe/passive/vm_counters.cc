#include "daemon/probe/passive/vm_counters.h"

#include <algorithm>
#include <sstream>

namespace tierpilot {

Result<std::map<std::string, uint64_t>> read_vm_counters(const Sysroot& sysroot) {
  const auto text = sysroot.read("/proc/vmstat");
  if (!text) return tl::unexpected(text.error());
  std::map<std::string, uint64_t> counters;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    uint64_t value;
    if (words >> name >> value) counters[name] = value;
  }
  return counters;
}

Result<VmEvents> VmEvents::start(const std::vector<std::string>& names, Sysroot sysroot) {
  const auto counters = read_vm_counters(sysroot);
  if (!counters) return fail(ErrorCode::kUnavailable, "unavailable: " + counters.error().message);
  VmEvents events(std::move(sysroot));
  for (const auto& name : names) {
    const auto found = counters->find(name);
    if (found == counters->end())
      return fail(ErrorCode::kUnavailable,
                  "unavailable: /proc/vmstat has no " + name + ": not in this kernel's build");
    events.before_.insert(*found);
    events.since_[name] = 0;
  }
  return events;
}

const std::map<std::string, uint64_t>& VmEvents::read() {
  const auto counters = read_vm_counters(sysroot_);
  if (!counters) return since_;
  for (auto& [name, since] : since_) {
    const auto found = counters->find(name);
    if (found != counters->end()) since = std::max(since, found->second - before_[name]);
  }
  return since_;
}

}  // namespace tierpilot
