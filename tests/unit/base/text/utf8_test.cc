#include "base/text/utf8.h"

#include <gtest/gtest.h>

namespace tierpilot::testing {
namespace {

// Borders of each length, from RFC 3629.
TEST(Utf8, TextIsText) {
  using std::string_view_literals::operator""sv;
  for (const auto text : {""sv, "plain"sv, "\0"sv, "\xc2\x80"sv, "\xdf\xbf"sv, "\xe0\xa0\x80"sv,
                          "\xed\x9f\xbf"sv, "\xee\x80\x80"sv, "\xef\xbf\xbf"sv,
                          "\xf0\x90\x80\x80"sv, "\xf4\x8f\xbf\xbf"sv, "gr\xc3\xbc\xc3\x9f!"sv})
    EXPECT_TRUE(is_utf8(text)) << text;
}

TEST(Utf8, OtherBytesAreNot) {
  for (const std::string_view bytes :
       {"\x80", "\xff", "a\xc3", "\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xe2\x82",
        "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3\x28", "\xf0\x90\x80\x41"})
    EXPECT_FALSE(is_utf8(bytes));
}

}  // namespace
}  // namespace tierpilot::testing
