#include "base/clock.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace tierpilot {
namespace {

TEST(SystemClock, StandsToTheBootTimeOfThisRunOfTheMachineAsLongAsNobodySetsIt) {
  const auto& clock = system_clock();
  const auto one = offset_of(clock), other = offset_of(clock);
  EXPECT_NE(one.boot_id, 0u);
  EXPECT_EQ(one.boot_id, other.boot_id);
  EXPECT_LT(std::abs(one.ms - other.ms), 1000);
}

TEST(ManualClock, HasAnotherOffsetOnceItIsSetAndAnotherIdOnceItIsBootedAnew) {
  ManualClock clock;
  const auto before = offset_of(clock);
  clock.advance_ns(5'000'000'000);
  EXPECT_EQ(offset_of(clock).ms, before.ms);
  clock.step_wall_ms(-7000);
  EXPECT_EQ(offset_of(clock).ms, before.ms - 7000);
  EXPECT_EQ(offset_of(clock).boot_id, before.boot_id);
  clock.reboot();
  EXPECT_NE(offset_of(clock).boot_id, before.boot_id);
}

}  // namespace
}  // namespace tierpilot
