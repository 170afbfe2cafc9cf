#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

TEST(Config, ReadsTypedValues) {
  auto reader = ConfigReader::parse(R"(
name = "a"
[lease]
duration_ms = 500
budget = "2MiB"
ratio = 1
cpus = "0-2"
ids = [4, 5]
on = true
)",
                                    "t.toml");
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->section("").text("name", ""), "a");
  auto lease = reader->section("lease");
  EXPECT_EQ(lease.integer("duration_ms", 1, 0, 1000), 500);
  EXPECT_EQ(lease.bytes("budget", 0), 2u << 20);
  EXPECT_DOUBLE_EQ(lease.number("ratio", 0, 0, 2), 1.0);
  EXPECT_EQ(lease.id_list("cpus", {}), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(lease.id_list("ids", {}), (std::vector<int>{4, 5}));
  EXPECT_TRUE(lease.boolean("on", false));
  EXPECT_EQ(lease.integer("absent", 7, 0, 9), 7);
  EXPECT_TRUE(reader->finish());
}

TEST(Config, NamesUnknownKeysWithTheirLines) {
  auto reader =
      ConfigReader::parse("known = 1\n[lease]\nduratoin_ms = 5\n[what]\nx = 1\n", "t.toml");
  ASSERT_TRUE(reader);
  reader->section("").integer("known", 0, 0, 9);
  reader->section("lease").integer("duration_ms", 1, 0, 9);
  auto status = reader->finish();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("t.toml:3: lease.duratoin_ms: unknown key"));
  EXPECT_THAT(status.error().message, HasSubstr("t.toml:4: what: unknown key"));
}

TEST(Config, ReadsFilesWithEitherLineEnd) {
  const std::string path = testing::TempDir() + "/config-line-ends.toml";
  for (const char* text : {"[a]\r\nb = 1\r\n", "[a]\r\nb = 1", "[a]\nb = 1\n\n"}) {
    std::ofstream(path) << text;
    auto reader = ConfigReader::load(path);
    ASSERT_TRUE(reader) << reader.error().message;
    EXPECT_EQ(reader->section("a").integer("b", 0, 0, 9), 1);
    EXPECT_TRUE(reader->finish());
  }
  std::filesystem::remove(path);
}

TEST(Config, CollectsEveryWrongValue) {
  auto reader = ConfigReader::parse("a = 'x'\nb = 99\n", "t.toml");
  ASSERT_TRUE(reader);
  auto top = reader->section("");
  EXPECT_EQ(top.integer("a", 3, 0, 9), 3);
  EXPECT_EQ(top.integer("b", 4, 0, 9), 4);
  auto status = reader->finish();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("t.toml:1: a:"));
  EXPECT_THAT(status.error().message, HasSubstr("t.toml:2: b: must be a whole number from 0 to 9"));
}

TEST(Config, SaysWhereTomlIsMalformed) {
  auto reader = ConfigReader::parse("a = [1,\n", "t.toml");
  ASSERT_FALSE(reader);
  EXPECT_THAT(reader.error().message, HasSubstr("t.toml:"));
  auto missing = ConfigReader::load("/nonexistent/x.toml");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(Config, ReadsAListOfTables) {
  auto reader = ConfigReader::parse(R"([placement]
cap = 3
[[placement.rule]]
name = "a"
[[placement.rule]]
name = 5
colour = "red"
)",
                                    "t.toml");
  ASSERT_TRUE(reader);
  auto placement = reader->section("placement");
  EXPECT_EQ(placement.integer("cap", 0, 0, 9), 3);
  EXPECT_TRUE(placement.tables("absent").empty());
  auto rules = placement.tables("rule");
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].text("name", ""), "a");
  EXPECT_TRUE(rules[0].has("name"));
  EXPECT_FALSE(rules[0].has("colour"));
  EXPECT_EQ(rules[1].text("name", "b"), "b");
  const auto status = reader->finish();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("t.toml:6: placement.rule[1].name: must be a"));
  EXPECT_THAT(status.error().message, HasSubstr("t.toml:7: placement.rule[1].colour: unknown key"));
}

TEST(Config, RefusesAListOfOtherThings) {
  for (const char* toml : {"[placement]\nrule = 3\n", "[placement]\nrule = [1]\n",
                           "[placement]\nrule = []\n", "[placement.rule]\nname = 'a'\n"}) {
    auto reader = ConfigReader::parse(toml, "t.toml");
    ASSERT_TRUE(reader);
    EXPECT_TRUE(reader->section("placement").tables("rule").empty());
    const auto status = reader->finish();
    ASSERT_FALSE(status) << toml;
    EXPECT_THAT(status.error().message, HasSubstr("placement.rule: must be a list of tables"));
  }
}

// A list of tables that nobody asked for is one unknown key.
TEST(Config, NamesAnUnknownListOfTables) {
  auto reader = ConfigReader::parse("[placement]\n[[placement.rule]]\nname = 'a'\n", "t.toml");
  ASSERT_TRUE(reader);
  reader->section("placement");
  const auto status = reader->finish();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("placement.rule: unknown key"));
}

TEST(Config, ASectionWithinASectionIsABugThatIsSeen) {
  auto reader = ConfigReader::parse("[search.start]\nserve = 1\n", "file.toml");
  ASSERT_TRUE(reader);
  EXPECT_THROW(reader->section("search.start"), std::logic_error);
}

TEST(Config, SectionThatIsNoTable) {
  auto reader = ConfigReader::parse("lease = 3\n", "t.toml");
  ASSERT_TRUE(reader);
  reader->section("lease").integer("x", 0, 0, 1);
  ASSERT_FALSE(reader->finish());
}

}  // namespace
}  // namespace tierpilot
