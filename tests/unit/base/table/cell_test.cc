#include "base/table/cell.h"

#include <gtest/gtest.h>

namespace tierpilot::sim {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

TEST(Cell, NumbersAreFiniteAndNothingElse) {
  EXPECT_EQ(parse_number("12.5"), 12.5);
  EXPECT_EQ(parse_number("-1"), -1);
  EXPECT_EQ(parse_number("1e3"), 1000);
  for (const auto* text : {"", " 1", "1 ", "1x", "nan", "inf", "1e999", "0x10", "--1", "1,5"})
    EXPECT_FALSE(parse_number(text)) << text;
  EXPECT_FALSE(parse_number(std::string_view("1\0", 2)));
}

TEST(Cell, TimesAreTextOrNumbers) {
  const int64_t expected = 1504521041 * kSecond;
  for (const auto* text : {"2017-09-04 10:30:41", "2017-09-04T10:30:41Z", "2017/09/04 10:30:41",
                           "1504521041", "1504521041.0", "1504521041000", "1504521041000000",
                           "2017-09-04 12:30:41+02:00", "2017-09-04T05:30:41-0500"})
    EXPECT_EQ(parse_time_ns(text), expected) << text;
  EXPECT_EQ(parse_time_ns("2017-09-04 10:30:41.25"), expected + kSecond / 4);
  EXPECT_EQ(parse_time_ns("2017-09-04 10:30"), expected - 41 * kSecond);
  EXPECT_EQ(parse_time_ns("1970-01-02"), 86400 * kSecond);
  EXPECT_EQ(parse_time_ns("0"), 0);
}

TEST(Cell, WhatIsNoTimeIsRefused) {
  for (const auto* text :
       {"", "soon", "-1", "1e300", "nan", "2017-13-04 10:30:41", "2017-02-30 10:30:41",
        "2017-09-04 24:30:41", "2017-09-04 10:60:41", "2017-09-04 10:30:41 PST", "2017-09-04 10",
        "-2017-09-04", "2017-09--4", "1969-12-31 23:59:59", "9999-01-01", "2017-09-04T",
        "2017"
        "-09-04 10:30:41+"})
    EXPECT_FALSE(parse_time_ns(text)) << text;
}

TEST(Cell, ShownCellsAreShortAndHarmless) {
  EXPECT_EQ(shown("a\x1b[2Jb"), "'a?[2Jb'");
  EXPECT_EQ(shown(std::string_view("\0\n", 2)), std::string("'?") + "?'");
  EXPECT_LT(shown(std::string(100'000, 'x')).size(), 60u);
}

}  // namespace
}  // namespace tierpilot::sim
