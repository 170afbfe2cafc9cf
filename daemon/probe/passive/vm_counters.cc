#include "daemon/probe/passive/vm_counters.h"

#include <algorithm>
#include <charconv>
#include <string_view>

namespace tierpilot {
namespace {

// Without streams: the daemon does it every second, and they took most of that.
template <class Use>
void for_each_counter(std::string_view text, const Use& use) {
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto space = line.find(' ');
    if (space == line.npos) continue;
    uint64_t value;
    const char* const number = line.data() + space + 1;
    if (std::from_chars(number, line.data() + line.size(), value).ec == std::errc{})
      use(line.substr(0, space), value);
  }
}

}  // namespace

Result<std::map<std::string, uint64_t>> read_vm_counters(const Sysroot& sysroot) {
  const auto text = sysroot.read("/proc/vmstat");
  if (!text) return tl::unexpected(text.error());
  std::map<std::string, uint64_t> counters;
  for_each_counter(*text, [&](std::string_view name, uint64_t value) {
    counters.emplace(std::string(name), value);
  });
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

const std::map<std::string, uint64_t, std::less<>>& VmEvents::read() {
  const auto text = sysroot_.read("/proc/vmstat");
  if (!text) return since_;
  for_each_counter(*text, [&](std::string_view name, uint64_t value) {
    const auto found = since_.find(name);
    if (found == since_.end()) return;
    const uint64_t before = before_.find(name)->second;
    if (value > before) found->second = std::max(found->second, value - before);
  });
  return since_;
}

}  // namespace tierpilot
