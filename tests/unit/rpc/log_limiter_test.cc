#include "rpc/log_limiter.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(LogLimiter, OneLineASecondAndACountOfTheOthers) {
  ManualClock clock;
  LogLimiter limiter(clock);
  uint64_t suppressed = 99;
  EXPECT_TRUE(limiter.admit(suppressed));
  EXPECT_EQ(suppressed, 0u);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limiter.admit(suppressed));
  clock.advance_ns(1'000'000'000);
  EXPECT_TRUE(limiter.admit(suppressed));
  EXPECT_EQ(suppressed, 5u);
  EXPECT_FALSE(limiter.admit(suppressed));
}

}  // namespace
}  // namespace tierpilot
