#include "policies/sim/plot/svg.h"

#include <gtest/gtest.h>

namespace tierpilot::sim::plot {
namespace {

TEST(EscapeXml, MarkupAndWhatXmlCannotHold) {
  EXPECT_EQ(escape_xml("a<b>&\"c"), "a&lt;b&gt;&amp;&quot;c");
  EXPECT_EQ(escape_xml("µ – 数 😀"), "µ – 数 😀");
  EXPECT_EQ(escape_xml(std::string_view("\0\n\x1b", 3)), "\uFFFD\uFFFD\uFFFD");
}

TEST(EscapeXml, BytesThatAreNotUtf8) {
  for (const char* bytes : {"\x80", "\xc0\xaf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xef\xbf\xbf", "\xff", "\xe2\x82", "\xf0\x9f\x98"}) {
    const auto escaped = escape_xml(bytes);
    EXPECT_NE(escaped.find("\uFFFD"), std::string::npos);
    EXPECT_EQ(escaped.size() % 3, 0u) << "nothing but replacements";
  }
}

TEST(FitText, CutsAtCharactersAndSaysSo) {
  EXPECT_EQ(fit_text("short", 12, 100), "short");
  const auto cut = fit_text(std::string(100, 'x'), 12, 100);
  EXPECT_LE(text_width(cut, 12), 100);
  EXPECT_TRUE(cut.ends_with("…"));
  std::string wide;
  for (int i = 0; i < 50; ++i) wide += "数";
  EXPECT_EQ(escape_xml(fit_text(wide, 12, 100)).find("\uFFFD"), std::string::npos);
  EXPECT_EQ(fit_text("anything", 12, 0), "…");
}

}  // namespace
}  // namespace tierpilot::sim::plot
