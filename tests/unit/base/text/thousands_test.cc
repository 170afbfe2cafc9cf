#include "base/text/thousands.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(Thousands, AreSetApart) {
  EXPECT_EQ(with_thousands("0"), "0");
  EXPECT_EQ(with_thousands("999"), "999");
  EXPECT_EQ(with_thousands("1000"), "1,000");
  EXPECT_EQ(with_thousands("1234567"), "1,234,567");
  EXPECT_EQ(with_thousands("-100"), "-100");
  EXPECT_EQ(with_thousands("-123456"), "-123,456");
  EXPECT_EQ(with_thousands("1234567.8912"), "1,234,567.8912");
}

}  // namespace
}  // namespace tierpilot
