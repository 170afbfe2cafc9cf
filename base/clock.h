// Time as a value that can be injected: product code asks a Clock, tests and simulation turn one.
#pragma once

#include <cstdint>

namespace tierpilot {

class Clock {
 public:
  virtual ~Clock() = default;
  // CLOCK_BOOTTIME: goes on during suspend, so a lease cannot outlive a nap of the machine.
  virtual int64_t boot_ns() const = 0;
  // Wall time since 1970, for what people read and what outlives a reboot.
  virtual int64_t wall_ms() const = 0;
  // Which run of a machine boot_ns() is of; 0: not known.
  virtual uint64_t boot_id() const { return 0; }
};

// How the wall clock stands to the boot time of one run of a machine. Only who sets it changes
// that: what steers it little by little steers boot time as well.
struct ClockOffset {
  uint64_t boot_id = 0;
  int64_t ms = 0;
};

inline ClockOffset offset_of(const Clock& clock) {
  return {clock.boot_id(), clock.wall_ms() - clock.boot_ns() / 1'000'000};
}

const Clock& system_clock();

class ManualClock final : public Clock {
 public:
  int64_t boot_ns() const override { return boot_ns_ += read_takes_ns_; }
  int64_t wall_ms() const override { return wall_ms_; }
  uint64_t boot_id() const override { return boot_id_; }
  void advance_ns(int64_t ns) {
    boot_ns_ += ns;
    wall_ms_ += ns / 1'000'000;
  }
  // What is done between two readings is to take long.
  void let_each_reading_take_ns(int64_t ns) { read_takes_ns_ = ns; }
  // Somebody sets the clock.
  void step_wall_ms(int64_t ms) { wall_ms_ += ms; }
  void reboot() {
    boot_ns_ = 1;
    ++boot_id_;
  }

 private:
  mutable int64_t boot_ns_ = 1;
  uint64_t boot_id_ = 1;
  int64_t read_takes_ns_ = 0;
  int64_t wall_ms_ = 1'700'000'000'000;
};

}  // namespace tierpilot
