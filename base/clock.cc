#include "base/clock.h"

#include <time.h>

namespace tierpilot {
namespace {

int64_t read_ns(clockid_t id) {
  timespec now{};
  clock_gettime(id, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

class SystemClock final : public Clock {
 public:
  int64_t boot_ns() const override { return read_ns(CLOCK_BOOTTIME); }
  int64_t wall_ms() const override { return read_ns(CLOCK_REALTIME) / 1'000'000; }
};

}  // namespace

const Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace tierpilot
