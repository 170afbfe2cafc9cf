#include "tools/cluster/duration.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(Duration, ReadsUnits) {
  EXPECT_EQ(*parse_duration_ms("30s"), 30'000);
  EXPECT_EQ(*parse_duration_ms("30"), 30'000);
  EXPECT_EQ(*parse_duration_ms("250ms"), 250);
  EXPECT_EQ(*parse_duration_ms("0.0001"), 1) << "0 is something else";
  EXPECT_EQ(*parse_duration_ms("0"), 0);
  EXPECT_EQ(*parse_duration_ms("1.5m"), 90'000);
  EXPECT_EQ(*parse_duration_ms("2h"), 7'200'000);
  EXPECT_EQ(*parse_duration_ms("1d"), 86'400'000);
}

TEST(Duration, RefusesWhatIsNoDuration) {
  for (const char* text : {"", "s", "-1s", "1 s", "nan", "inf", "1e300h", "10y", "99999d"}) {
    const auto duration = parse_duration_ms(text);
    ASSERT_FALSE(duration) << text;
    EXPECT_NE(duration.error().message.find(text), std::string::npos);
  }
}

TEST(Duration, SaysThatOneIsTooLong) {
  for (const char* text : {"10000000h", "3651d", "1e300h"})
    EXPECT_NE(parse_duration_ms(text).error().message.find("longer than ten years, 3650d"),
              std::string::npos)
        << text;
  EXPECT_TRUE(parse_duration_ms("3650d"));
}

TEST(Duration, PrintsTheUnitThatFits) {
  EXPECT_EQ(format_duration_ns(0), "0 ns");
  EXPECT_EQ(format_duration_ns(850), "850 ns");
  EXPECT_EQ(format_duration_ns(4'200), "4.2 us");
  EXPECT_EQ(format_duration_ns(13e6), "13 ms");
  EXPECT_EQ(format_duration_ns(2.5e9), "2.5 s");
  EXPECT_EQ(format_duration_ns(90 * 86400e9), "90 d");
}

TEST(Duration, TimesAreAgoOrLocalOrUtc) {
  EXPECT_EQ(*parse_time_ms("2m", 1'000'000), 880'000);
  EXPECT_EQ(*parse_time_ms("1970-01-02T00:00Z", 0), 86'400'000);
  EXPECT_EQ(*parse_time_ms("2024-01-31 12:00:05Z", 0), 1'706'702'405'000);
  EXPECT_EQ(*parse_time_ms("2024-01-31 12:00", 0) - *parse_time_ms("2024-01-31", 0), 43'200'000);
  EXPECT_EQ(*parse_time_ms("2024-02-29", 0), *parse_time_ms("2024-02-29T00:00:00", 0));
  for (const char* text : {"", "yesterday", "2024-13-01", "2024-02-30", "2024-01-31 25:00",
                           "2024-01-31 12:00 UTC", "2024-01", "12:00"})
    EXPECT_FALSE(parse_time_ms(text, 0)) << text;
}

TEST(Duration, AgesLookBackAndForward) {
  EXPECT_EQ(format_age(1'000, 13'000), "12 s ago");
  EXPECT_EQ(format_age(181'000, 1'000), "in 3.0 min");
  EXPECT_EQ(format_age(0, 1'000), "-");
  EXPECT_EQ(format_age(INT64_MIN, INT64_MAX).substr(0, 3), "213");  // no overflow
}

}  // namespace
}  // namespace tierpilot
