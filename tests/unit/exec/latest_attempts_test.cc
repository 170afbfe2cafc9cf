// No attempt of a task is launched twice, nor beside another one.
#include "daemon/exec/latest_attempts.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(LatestAttempts, OneAtATimeAndEachOnce) {
  LatestAttempts attempts;
  EXPECT_TRUE(attempts.check_new(7, 1));
  attempts.launched(7, 1);
  EXPECT_TRUE(attempts.check_running(7, 1));
  EXPECT_FALSE(attempts.check_running(7, 2));
  EXPECT_FALSE(attempts.check_new(7, 2)) << "the first one runs";
  attempts.forget(7);
  EXPECT_TRUE(attempts.check_running(7, 1)) << "what runs is not forgotten";
  attempts.ended(7);
  EXPECT_FALSE(attempts.check_running(7, 1));
  EXPECT_FALSE(attempts.check_new(7, 1));
  EXPECT_TRUE(attempts.check_new(7, 2));
  attempts.forget(7);
  EXPECT_TRUE(attempts.check_new(7, 1));
}

TEST(LatestAttempts, EndTogetherOnce) {
  LatestAttempts attempts;
  attempts.launched(7, 3);
  attempts.launched(8, 1);
  attempts.ended(8);
  const auto ended = attempts.end_all();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0], (std::pair<uint64_t, uint32_t>(7, 3)));
  EXPECT_TRUE(attempts.end_all().empty());
}

}  // namespace
}  // namespace tierpilot
