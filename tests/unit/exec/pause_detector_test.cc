// A machine whose clocks are set, slewed and stopped, and what the detector makes of its readings.
#include "daemon/exec/pause_detector.h"

#include <gtest/gtest.h>

#include <random>

namespace tierpilot {
namespace {

constexpr int64_t kMs = 1'000'000, kS = 1'000 * kMs;

class FakeMachine {
 public:
  // `drift_ppm`: by how much the hardware clock is faster than the boot clock.
  explicit FakeMachine(int64_t drift_ppm = 0) : drift_ppm_(drift_ppm) {}

  void run(int64_t ns) {
    boot_ns_ += ns;
    hardware_ns_ += ns + ns / 1'000'000 * drift_ppm_;
    wall_ns_ += ns;
  }
  void pause(int64_t ns) { hardware_ns_ += ns; }
  void step_wall(int64_t ns) { wall_ns_ += ns; }
  void set_hardware(int64_t ns) { hardware_ns_ = ns; }
  void set_hardware_by_wall() { hardware_ns_ = wall_ns_; }
  int64_t wall_ns() const { return wall_ns_; }

  // Takes `slow_ns`, half of it before the hardware clock is read.
  ClockReading read(int64_t slow_ns = 200'000) {
    ClockReading reading{.boot_before_ns = boot_ns_};
    run(slow_ns / 2);
    reading.hardware_s = hardware_ns_ / kS;
    reading.wall_ns = wall_ns_;
    run(slow_ns / 2);
    reading.boot_after_ns = boot_ns_;
    return reading;
  }

 private:
  const int64_t drift_ppm_;
  int64_t boot_ns_ = 12'345 * kMs;
  int64_t wall_ns_ = 1'700'000'000 * kS + 678 * kMs;
  int64_t hardware_ns_ = wall_ns_;
};

// Reads every half second for so long; true when a pause was seen.
bool pause_seen(PauseDetector& detector, FakeMachine& machine, int64_t ns) {
  bool seen = false;
  for (int64_t passed_ns = 0; passed_ns < ns; passed_ns += 500 * kMs) {
    seen |= detector.paused_ns(machine.read()) > 0;
    machine.run(500 * kMs);
  }
  return seen;
}

TEST(PauseDetector, NothingIsSeenWhereNothingIs) {
  for (const int64_t drift_ppm : {-900, -1, 0, 1, 900}) {
    FakeMachine machine(drift_ppm);
    PauseDetector detector;
    EXPECT_FALSE(pause_seen(detector, machine, 3'600 * kS)) << drift_ppm << " ppm";
    machine.run(86'400 * kS);  // idle, and not read for a day
    EXPECT_FALSE(pause_seen(detector, machine, 60 * kS)) << drift_ppm << " ppm";
  }
}

TEST(PauseDetector, ReadingsAtAnyTimeThatTakeLongAgree) {
  std::mt19937_64 random(7);
  FakeMachine machine(500);
  PauseDetector detector;
  for (int i = 0; i < 20'000; ++i) {
    const int64_t slow_ns = static_cast<int64_t>(random() % 3'000) * (i % 50 == 0 ? kMs : 1'000);
    ASSERT_EQ(detector.paused_ns(machine.read(slow_ns)), 0) << i;
    machine.run(static_cast<int64_t>(random() % 1'000) * kMs);
  }
}

TEST(PauseDetector, APauseIsSeenByTheNextReadingAndNotTakenForShorter) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 500; ++i) {
    FakeMachine machine;
    PauseDetector detector;
    machine.run(static_cast<int64_t>(random() % 1'000) * kMs);
    detector.paused_ns(machine.read());
    machine.run(static_cast<int64_t>(random() % 500) * kMs);
    const int64_t pause_ns = 2 * kS + static_cast<int64_t>(random() % 30'000) * kMs;
    machine.pause(pause_ns);
    const int64_t seen_ns = detector.paused_ns(machine.read());
    ASSERT_GE(seen_ns, pause_ns);
    ASSERT_LE(seen_ns, pause_ns + 2 * kS + 10 * kMs);
    ASSERT_FALSE(pause_seen(detector, machine, 20 * kS)) << "seen twice";
  }
}

TEST(PauseDetector, ManyReadingsTellShorterPauses) {
  FakeMachine machine;
  PauseDetector detector;
  for (int i = 0; i < 100; ++i) {
    detector.paused_ns(machine.read());
    machine.run(470 * kMs);
  }
  machine.pause(700 * kMs);
  EXPECT_TRUE(pause_seen(detector, machine, 2 * kS));
}

TEST(PauseDetector, ManyShortPausesAddUp) {
  FakeMachine machine;
  PauseDetector detector;
  int64_t seen_ns = 0;
  for (int i = 0; i < 100; ++i) {
    seen_ns += detector.paused_ns(machine.read());
    machine.run(500 * kMs);
    machine.pause(100 * kMs);
  }
  EXPECT_GE(seen_ns, 100 * 100 * kMs - 2 * kS);
}

TEST(PauseDetector, AStepOfTheWallClockIsNoPause) {
  FakeMachine machine;
  PauseDetector detector;
  for (const int64_t step_ns : {3'600 * kS, -86'400 * kS, 30 * kS}) {
    EXPECT_FALSE(pause_seen(detector, machine, 10 * kS));
    machine.step_wall(step_ns);
    EXPECT_FALSE(pause_seen(detector, machine, 10 * kS)) << step_ns;
  }
}

// As the kernel does every eleven minutes, or hwclock.
TEST(PauseDetector, AHardwareClockThatIsSetByTheWallClockIsNoPause) {
  for (const int64_t step_ns : {3'600 * kS, -3'600 * kS}) {
    FakeMachine machine;
    PauseDetector detector;
    machine.step_wall(step_ns);
    EXPECT_FALSE(pause_seen(detector, machine, 10 * kS));
    machine.set_hardware_by_wall();
    EXPECT_FALSE(pause_seen(detector, machine, 10 * kS)) << step_ns;
  }
}

// It cannot be told apart from a pause after which the wall clock was set right at once.
TEST(PauseDetector, BothSetAtOnceCountAsAPause) {
  FakeMachine machine;
  PauseDetector detector;
  EXPECT_FALSE(pause_seen(detector, machine, 10 * kS));
  machine.pause(20 * kS);
  machine.step_wall(20 * kS);
  EXPECT_GE(detector.paused_ns(machine.read()), 20 * kS);
}

TEST(PauseDetector, APauseIsAlsoSeenAfterTheHardwareClockWasSetBack) {
  FakeMachine machine;
  PauseDetector detector;
  EXPECT_FALSE(pause_seen(detector, machine, 10 * kS));
  machine.set_hardware(machine.wall_ns() - 86'400 * kS);
  EXPECT_FALSE(pause_seen(detector, machine, 10 * kS));
  machine.pause(10 * kS);
  EXPECT_GE(detector.paused_ns(machine.read()), 10 * kS);
}

}  // namespace
}  // namespace tierpilot
