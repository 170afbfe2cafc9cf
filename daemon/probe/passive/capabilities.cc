#include "daemon/probe/passive/capabilities.h"

#include <fmt/format.h>
#include <linux/capability.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace tierpilot {

Capabilities Capabilities::parse(std::string_view status) {
  Capabilities result;
  constexpr std::string_view kKey = "CapEff:\t";
  const auto at = status.find(kKey);
  if (at == std::string_view::npos) return result;
  const char* hex = status.data() + at + kKey.size();
  std::from_chars(hex, status.data() + status.size(), result.effective_, 16);
  return result;
}

Capabilities Capabilities::of_self(const Sysroot& sysroot) {
  const auto status = sysroot.read("/proc/self/status");
  return status ? parse(*status) : Capabilities();
}

std::string Capabilities::missing(const std::vector<int>& wanted) const {
  std::string names;
  for (const int capability : wanted) {
    if (has(capability) || has(CAP_SYS_ADMIN)) continue;
    if (!names.empty()) names += ", ";
    names += capability_name(capability);
  }
  return names;
}

std::string capability_name(int capability) {
  switch (capability) {
    case CAP_BPF:
      return "CAP_BPF";
    case CAP_PERFMON:
      return "CAP_PERFMON";
    case CAP_SYS_ADMIN:
      return "CAP_SYS_ADMIN";
    case CAP_SYS_NICE:
      return "CAP_SYS_NICE";
    case CAP_SYS_PTRACE:
      return "CAP_SYS_PTRACE";
    default:
      return fmt::format("capability {}", capability);
  }
}

std::string unavailable_reason(std::string_view what, int err, std::string_view detail,
                               const Capabilities& capabilities) {
  std::string reason = fmt::format("unavailable: {}: {}", what, std::strerror(err));
  const auto missing = capabilities.missing({CAP_BPF, CAP_PERFMON});
  const bool denied = err == EPERM || err == EACCES;
  if (denied && !missing.empty()) return reason + fmt::format(" (missing {})", missing);
  if (denied && detail.empty())
    reason += capabilities.has(CAP_SYS_ADMIN)
                  ? " (the kernel's build, lockdown, seccomp or a container refuses it)"
                  : " (needs CAP_SYS_ADMIN, or lockdown, seccomp or a container refuses it)";
  if (!detail.empty()) reason += fmt::format(" ({})", detail);
  return reason;
}

}  // namespace tierpilot
