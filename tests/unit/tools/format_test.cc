#include "tools/output/format.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tierpilot {
namespace {

using nlohmann::ordered_json;

TEST(FormatNumber, KeepsThreeSignificantDigitsAndSeparatesThousands) {
  EXPECT_EQ(format_number(0), "0");
  EXPECT_EQ(format_number(3.14159), "3.14");
  EXPECT_EQ(format_number(9.999), "10.0");
  EXPECT_EQ(format_number(31.4159), "31.4");
  EXPECT_EQ(format_number(99.97), "100");
  EXPECT_EQ(format_number(0.0027123), "0.00271");
  EXPECT_EQ(format_number(1234567.8), "1,234,568");
  EXPECT_EQ(format_number(-1234.5), "-1,234");
  EXPECT_EQ(format_number(-999), "-999");
}

TEST(FormatCell, WritesEachKind) {
  EXPECT_EQ(format_cell(1234567, Format::kNumber), "1,234,567");
  EXPECT_EQ(format_cell(uint64_t{18446744073709551615U}, Format::kNumber),
            "18,446,744,073,709,551,615");
  EXPECT_EQ(format_cell(67108864, Format::kBytes), "64.0 MiB");
  EXPECT_EQ(format_cell(0.1234, Format::kPercent), "12.3 %");
  EXPECT_EQ(format_cell(1234, Format::kText), "1234");
  EXPECT_EQ(format_cell(true, Format::kText), "yes");
  EXPECT_EQ(format_cell({"a", "b", 3}, Format::kText), "a, b, 3");
  EXPECT_EQ(format_cell("text", Format::kNumber), "text");
  EXPECT_EQ(format_cell(1'700'000'000'000, Format::kTime).size(), 19U);
  EXPECT_EQ(format_cell(0, Format::kTime), "-") << "a time that there was none of";
}

TEST(Printable, TakesEscapeCodesAway) {
  EXPECT_EQ(format_cell("a\x1b[31mb\n", Format::kText), "a?[31mb?");
  EXPECT_EQ(format_cell("a\xc2\x9bmb", Format::kText), "a??mb") << "C1 in UTF-8";
  EXPECT_EQ(format_cell("a\x9bmb", Format::kText), "a?mb") << "C1 as a byte";
  EXPECT_EQ(format_cell("Größe", Format::kText), "Größe");
}

TEST(DisplayWidth, CountsCodePoints) {
  EXPECT_EQ(display_width("µs"), 2U);
}

}  // namespace
}  // namespace tierpilot
