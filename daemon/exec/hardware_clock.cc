#include "daemon/exec/hardware_clock.h"

#include <fmt/format.h>
#include <time.h>

#include <string_view>

#include "base/clock.h"

namespace tierpilot {
namespace {

constexpr std::string_view kClocks = "/sys/class/rtc";

int64_t wall_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Other processors than x86 do not say whether they are real.
bool is_real_machine(const Sysroot& sysroot) {
  const auto cpus = sysroot.read("/proc/cpuinfo");
  return cpus && cpus->find("\nflags\t") != std::string::npos &&
         cpus->find(" hypervisor ") == std::string::npos;
}

}  // namespace

Result<HardwareClock> HardwareClock::find(const Sysroot& sysroot) {
  if (is_real_machine(sysroot))
    return fail(ErrorCode::kUnavailable, "not needed: this is no virtual machine");
  for (const auto& name : sysroot.list(kClocks)) {
    HardwareClock clock(sysroot, fmt::format("{}/{}/since_epoch", kClocks, name));
    if (clock.read()) return clock;
  }
  return fail(ErrorCode::kUnavailable,
              fmt::format("this virtual machine has no hardware clock that can be read in {}; a "
                          "pause of it is not noticed",
                          sysroot.resolve(kClocks).string()));
}

Result<ClockReading> HardwareClock::read() const {
  ClockReading reading;
  reading.boot_before_ns = system_clock().boot_ns();
  const auto seconds = sysroot_.read_int(path_);
  if (!seconds) return tl::unexpected(seconds.error());
  // What a broken clock says must not overflow where it is compared.
  if (*seconds < 0 || *seconds > 1LL << 32)
    return fail(ErrorCode::kInvalid, fmt::format("{}: {} s is no time", path_, *seconds));
  reading.hardware_s = *seconds;
  reading.wall_ns = wall_ns();
  reading.boot_after_ns = system_clock().boot_ns();
  return reading;
}

}  // namespace tierpilot
