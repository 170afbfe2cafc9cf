#include "model/attempt.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(AttemptId, TextRoundTrip) {
  EXPECT_EQ(parse_attempt("17-2"), (AttemptId{17, 2}));
  EXPECT_EQ(to_string(AttemptId{17, 2}), "17-2");
  for (const char* wrong : {"", "-", "1", "1-", "-1", "01-1", "1-1x", "+1-1", "1-99999999999",
                            "99999999999999999999-1", "../1-1"})
    EXPECT_FALSE(parse_attempt(wrong)) << wrong;
}

TEST(AttemptId, KeysAreInTheOrderOfTasksAndTheirAttempts) {
  EXPECT_LT(attempt_key({1, 65'535}), attempt_key({2, 0}));
  EXPECT_LT(attempt_key({2, 1}), attempt_key({2, 2}));
  EXPECT_EQ(first_attempt_key(7), attempt_key({7, 0}));
  EXPECT_EQ(last_attempt_key(7) + 1, first_attempt_key(8));
}

// Stores have them.
TEST(AttemptId, KeysAreForGood) {
  EXPECT_EQ(attempt_key({7, 2}), 458'754u);
}

}  // namespace
}  // namespace tierpilot
