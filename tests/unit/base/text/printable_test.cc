#include "base/text/printable.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(Printable, KeepsText) {
  EXPECT_EQ(printable(""), "");
  EXPECT_EQ(printable("dataset 'Größe' ~"), "dataset 'Größe' ~");
  EXPECT_EQ(printable("\xc2\xa0"), "\xc2\xa0") << "the first beyond C1";
}

TEST(Printable, TakesControlCharactersAway) {
  EXPECT_EQ(printable("a\x1b[31mb\n\x7f"), "a?[31mb??");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
  EXPECT_EQ(printable("ö\xc2\x80\xc2\x9f"), "ö????");
}

TEST(Printable, TakesWhatIsNotUtf8Away) {
  EXPECT_EQ(printable("a\x9bmb"), "a?mb");
  EXPECT_EQ(printable("ö\xff"), "???");
  EXPECT_EQ(printable("a\xc2"), "a?");
  EXPECT_EQ(printable("\xc2m\xff"), "?m?");
}

TEST(Printable, CutsBetweenCharacters) {
  EXPECT_EQ(printable("abcd", 4), "abcd");
  EXPECT_EQ(printable("abcde", 4), "abcd...");
  EXPECT_EQ(printable("abcö", 4), "abc...");
  EXPECT_EQ(printable("abö!", 4), "abö...");
  EXPECT_EQ(printable("\x80\x80\x80", 2), "...");
}

}  // namespace
}  // namespace tierpilot
