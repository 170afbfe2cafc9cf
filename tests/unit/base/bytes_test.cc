#include "base/bytes.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(Bytes, ReadsUnits) {
  EXPECT_EQ(*parse_bytes("4096"), 4096u);
  EXPECT_EQ(*parse_bytes("64MiB"), 64u << 20);
  EXPECT_EQ(*parse_bytes("1.5 GiB"), 1610612736u);
  EXPECT_EQ(*parse_bytes("2MB"), 2'000'000u);
}

TEST(Bytes, RefusesWhatIsNotASize) {
  for (const char* text : {"", "MiB", "-1", "1 mib", "12x", "nan", "inf", "1e300", "99999999TiB"}) {
    auto size = parse_bytes(text);
    ASSERT_FALSE(size) << text;
    EXPECT_NE(size.error().message.find(text), std::string::npos);
  }
}

// 0 is no limit where one is asked for.
TEST(Bytes, NoneIsRoundedToNothing) {
  EXPECT_EQ(*parse_bytes("0"), 0u);
  EXPECT_EQ(*parse_bytes("0GiB"), 0u);
  EXPECT_EQ(*parse_bytes("1.5"), 1u);
  for (const char* text : {"0.5", "0.0001KiB"})
    EXPECT_NE(parse_bytes(text).error().message.find("less than a byte"), std::string::npos)
        << text;
}

TEST(Bytes, SaysThatOneIsTooLarge) {
  for (const char* text : {"99999999999999999999", "99999999TiB"})
    EXPECT_NE(parse_bytes(text).error().message.find("is too large"), std::string::npos) << text;
  EXPECT_EQ(parse_bytes("12x").error().message.find("too large"), std::string::npos);
}

TEST(Bytes, Prints) {
  EXPECT_EQ(format_bytes(512), "512 B");
  EXPECT_EQ(format_bytes(64u << 20), "64.0 MiB");
}

}  // namespace
}  // namespace tierpilot
