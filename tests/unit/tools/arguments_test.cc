#include "tools/output/arguments.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text/json_text.h"

namespace tierpilot {
namespace {

class ArgumentsTest : public ::testing::Test {
 protected:
  ArgumentsTest() {
    app_.require_subcommand(1);
    auto* node = app_.add_subcommand("node", "nodes");
    node->require_subcommand(1);
    node->add_subcommand("list", "list nodes")->add_option("--limit", limit_);
    node->add_subcommand("show", "show a node");
  }
  std::optional<int> parse(std::vector<const char*> args) {
    args.insert(args.begin(), "tool");
    return parse_arguments(app_, static_cast<int>(args.size()), args.data(), output_);
  }
  std::ostringstream out_, err_;
  Output output_{false, out_, err_};
  CLI::App app_{"a tool", "tool"};
  int limit_ = 0;
};

TEST_F(ArgumentsTest, TheJsonFlagStandsAnywhere) {
  EXPECT_EQ(parse({"node", "list", "--limit", "3", "-j"}), std::nullopt);
  EXPECT_TRUE(output_.json);
  EXPECT_EQ(limit_, 3);
}

TEST_F(ArgumentsTest, VersionAndHelpEndWell) {
  EXPECT_EQ(parse({"--version"}), kExitOk);
  EXPECT_EQ(out_.str(), std::string("tool ") + TIERPILOT_VERSION + "\n");
}

TEST_F(ArgumentsTest, HelpOfAVerb) {
  EXPECT_EQ(parse({"node", "--help"}), kExitOk);
  EXPECT_NE(out_.str().find("show a node"), std::string::npos);
}

TEST_F(ArgumentsTest, HelpThatCannotBeWrittenFails) {
  std::ofstream full("/dev/full");
  if (!full) GTEST_SKIP() << "no /dev/full";
  output_.out = &full;
  EXPECT_EQ(parse({"node", "--help"}), kExitFailed);
  EXPECT_NE(err_.str().find("standard output"), std::string::npos) << err_.str();
}

TEST_F(ArgumentsTest, HelpSaysNumbersAndTheirLimitsInWords) {
  auto* show = app_.get_subcommand("node")->get_subcommand("show");
  double weight = 0;
  std::string engine;
  show->add_option("--count", limit_)->check(CLI::Range(1, 16));
  show->add_option("--weight", weight)->check(number_between(0.5, 2));
  show->add_option("--engine", engine)->check(CLI::IsMember({"cpu", "gpu"}));
  show->add_option("--page", limit_);
  EXPECT_EQ(parse({"node", "show", "--help"}), kExitOk);
  for (const char* part : {"--count NUMBER (1 to 16)", "--weight NUMBER (0.5 to 2)",
                           "--engine {cpu,gpu}", "--page NUMBER"})
    EXPECT_NE(out_.str().find(part), std::string::npos) << part << " is not in\n" << out_.str();
}

TEST_F(ArgumentsTest, AMissingVerbNamesTheChoices) {
  EXPECT_EQ(parse({"node"}), kExitUsage);
  EXPECT_NE(err_.str().find("tool node: "), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("list, show"), std::string::npos) << err_.str();
}

TEST_F(ArgumentsTest, AnUnknownVerbIsNamed) {
  EXPECT_EQ(parse({"node", "shwo"}), kExitUsage);
  EXPECT_NE(err_.str().find("'shwo'"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("list, show"), std::string::npos) << err_.str();
}

TEST_F(ArgumentsTest, AnUnknownOptionIsUsageAndNamed) {
  EXPECT_EQ(parse({"node", "list", "--bogus"}), kExitUsage);
  EXPECT_NE(err_.str().find("--bogus"), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("tool node list --help"), std::string::npos) << err_.str();
}

TEST_F(ArgumentsTest, WhatIsNoFiniteNumberWithinItsBoundsIsRefused) {
  const auto parse_load = [this](const char* text) {
    CLI::App app("a tool", "tool");
    double load = 0;
    app.add_option("--load", load)->check(number_between(0.001, 10));
    const char* const words[]{"tool", "--load", text};
    return parse_arguments(app, 3, words, output_);
  };
  for (const char* text : {"nan", "-nan", "NaN", "nan(7)", "inf", "-inf", "infinity", "1e999", "0",
                           "-1", "10.1", "0x", "1x", ""}) {
    EXPECT_EQ(parse_load(text), kExitUsage) << text;
    EXPECT_NE(err_.str().find("--load"), std::string::npos) << err_.str();
    err_.str("");
  }
  for (const char* text : {"0.001", "1", "10", "1e-2"})
    EXPECT_EQ(parse_load(text), std::nullopt) << text << err_.str();
}

TEST_F(ArgumentsTest, UsageErrorsAreJsonToo) {
  EXPECT_EQ(parse({"node", "list", "--limit", "many", "-j"}), kExitUsage);
  EXPECT_EQ(parse_json<nlohmann::json>(err_.str())["error"]["code"],
            error_code_name(ErrorCode::kInvalid));
}

}  // namespace
}  // namespace tierpilot
