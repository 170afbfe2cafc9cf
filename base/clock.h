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
};

const Clock& system_clock();

class ManualClock final : public Clock {
 public:
  int64_t boot_ns() const override { return boot_ns_ += read_takes_ns_; }
  int64_t wall_ms() const override { return wall_ms_; }
  void advance_ns(int64_t ns) {
    boot_ns_ += ns;
    wall_ms_ += ns / 1'000'000;
  }
  // What is done between two readings is to take long.
  void let_each_reading_take_ns(int64_t ns) { read_takes_ns_ = ns; }
  // Somebody sets the clock.
  void step_wall_ms(int64_t ms) { wall_ms_ += ms; }

 private:
  mutable int64_t boot_ns_ = 1;
  int64_t read_takes_ns_ = 0;
  int64_t wall_ms_ = 1'700'000'000'000;
};

}  // namespace tierpilot
