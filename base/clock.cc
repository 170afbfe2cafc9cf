#include "base/clock.h"

#include <time.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

namespace tierpilot {
namespace {

int64_t read_ns(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

// Of this process's namespace of times, each of which has a boot time of its own.
uint64_t read_boot_id() {
  std::string boot;
  if (!std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot)) return 0;
  std::error_code none;
  return std::hash<std::string>{}(
      boot + std::filesystem::read_symlink("/proc/self/ns/time", none).string());
}

class SystemClock final : public Clock {
 public:
  int64_t boot_ns() const override { return read_ns(CLOCK_BOOTTIME); }
  int64_t wall_ms() const override { return read_ns(CLOCK_REALTIME) / 1'000'000; }
  uint64_t boot_id() const override { return boot_id_; }

 private:
  const uint64_t boot_id_ = read_boot_id();
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace tierpilot
