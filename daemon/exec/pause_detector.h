// Tells that a virtual machine was stopped while its boot clock stood still: the clock of its
// hardware, which the hypervisor keeps, has gone ahead of the boot clock.
//
// Every reading says between which bounds the two are apart; as long as they agree, they narrow one
// another. A reading that cannot be reconciled with those before is a pause, unless somebody has
// set the hardware clock.
#pragma once

#include <cstdint>
#include <optional>

namespace tierpilot {

struct ClockReading {
  int64_t boot_before_ns = 0, boot_after_ns = 0;  // CLOCK_BOOTTIME around the other two
  int64_t hardware_s = 0;                         // whole seconds
  int64_t wall_ns = 0;                            // CLOCK_REALTIME
};

class PauseDetector {
 public:
  // How long the machine may have stood still since the last reading, at most: up to a second more
  // than it did. 0: not for longer than the hardware clock can tell, which is 2 s after the first
  // reading, and less the more there were.
  int64_t paused_ns(const ClockReading& reading);

 private:
  struct Span {
    int64_t low_ns = 0, high_ns = 0;
    bool holds(int64_t ns, int64_t slack_ns) const {
      return ns >= low_ns - slack_ns && ns <= high_ns + slack_ns;
    }
  };
  struct Seen {
    Span hardware_ahead;  // of the boot clock
    int64_t wall_ahead_ns = 0;
    int64_t boot_ns = 0;
  };
  bool was_set(const Span& before, const Seen& now) const;

  std::optional<Seen> last_;
};

}  // namespace tierpilot
