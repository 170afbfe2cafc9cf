// What scripts rely on: exit codes, JSON on stdout, errors on stderr.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

Outcome tiertool(Argv arguments) {
  arguments.insert(arguments.begin(), program("TIERPILOT_TEST_TIERTOOL"));
  return run_command(arguments);
}

TEST(CliAlone, UsageErrorsAreTwo) {
  for (const Argv& arguments :
       {Argv{}, Argv{"no-such-command"}, Argv{"task", "wait"},
        Argv{"task", "submit", "--units", "many", "--", "true"}, Argv{"task", "show", "-1"},
        Argv{"task", "wait", "1", "-1"}, Argv{"task", "logs", "99999999999999999999"}}) {
    const auto outcome = tierctl_at("unix:/nowhere/c.sock", arguments);
    EXPECT_EQ(outcome.code, 2) << fmt::format("{}", outcome.err);
    EXPECT_EQ(outcome.out, "");
    EXPECT_NE(outcome.err, "");
  }
  EXPECT_EQ(tiertool({"no-such-command"}).code, 2);
  EXPECT_EQ(tiertool({}).code, 2);
}

TEST(CliAlone, AnUnreachableCoordinatorIsThree) {
  const auto outcome = tierctl_at("unix:/nowhere/c.sock", {"node", "list"});
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("/nowhere/c.sock"), std::string::npos) << outcome.err;
  expect_json_error(tierctl_at("unix:/nowhere/c.sock", {"-j", "node", "list"}), 3,
                    "/nowhere/c.sock");
}

std::vector<std::string> sections_of(const std::filesystem::path& example) {
  std::vector<std::string> sections;
  std::ifstream in(example);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with('[')) sections.push_back(line.substr(0, line.find(']') + 1));
  EXPECT_GT(sections.size(), 5U) << example;
  return sections;
}

TEST(CliAlone, ConfigCheckKnowsEachSectionOfTheExamples) {
  const TempFolder folder("/tmp");
  const auto file = (folder.path() / "some.toml").string();
  for (const std::string program : {"tierpilotd", "tierpilot-coordinator"})
    for (const auto& section :
         sections_of(std::filesystem::path(std::getenv("TIERPILOT_TEST_SOURCE")) / "systemd" /
                     (program + ".toml"))) {
      std::ofstream(file) << section << "\n";
      const auto checked = tierctl_at("unix:/nowhere/c.sock", {"config", "check", file});
      EXPECT_EQ(checked.err.find("is no section"), std::string::npos) << checked.err;
      const bool names_it = checked.out.find(program) != std::string::npos ||
                            checked.err.find("--program") != std::string::npos ||
                            checked.err.find(file) != std::string::npos;
      EXPECT_TRUE(names_it) << section << ": " << checked.out << checked.err;
    }
}

TEST(CliAlone, ConfigCheckNamesUnknownKeys) {
  const TempFolder folder("/tmp");
  const auto file = (folder.path() / "coordinator.toml").string();
  const auto check = [&](const std::string& text, bool json) {
    std::ofstream(file) << text;
    return tierctl_at("unix:/nowhere/c.sock",
                      json ? Argv{"-j", "config", "check", file} : Argv{"config", "check", file});
  };
  EXPECT_EQ(check("[coordinator]\nstate_dir = \"/tmp/x\"\n", false).code, 0);
  const auto good = check("[coordinator]\nstate_dir = \"/tmp/x\"\n", true);
  EXPECT_EQ(parse(good.out).value("schema", 0), 1);
  const auto unknown = check("[coordinator]\nstate_dri = \"/tmp/x\"\n", false);
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("state_dri"), std::string::npos) << unknown.err;
  EXPECT_NE(unknown.err.find(file), std::string::npos) << unknown.err;
  expect_json_error(check("[coordinator]\nstate_dri = 1\n", true), 1, "state_dri");
  expect_json_error(check("[coordinator\n", true), 1, file);
  expect_json_error(check("[node]\nunits = -1\n", true), 1, "units");
  EXPECT_EQ(check("[guard]\ncontrol_share = 0.1\n", false).code, 0);
  EXPECT_FALSE(parse(check("[training]\nnice = 3\n", true).out).contains("hints"));
  const auto moved = check("[dqn]\ntraining_nice = 3\n", true);
  EXPECT_EQ(moved.code, 0) << "keys of earlier files are read";
  EXPECT_NE(parse(moved.out)["hints"][0]["text"].get<std::string>().find("[training]"),
            std::string::npos);
  const auto misspelt = check("[log]\nlevel = \"info\"\n[coordinater]\n", false);
  EXPECT_EQ(misspelt.code, 1);
  EXPECT_NE(misspelt.err.find(file + ":3:"), std::string::npos) << misspelt.err;
  EXPECT_NE(misspelt.err.find("'coordinater'"), std::string::npos) << misspelt.err;
  const auto either = check("[log]\nlevel = \"info\"\n", false);
  EXPECT_EQ(either.code, 1);
  EXPECT_NE(either.err.find("--program"), std::string::npos) << either.err;
  std::filesystem::remove(file);
  EXPECT_EQ(tierctl_at("unix:/nowhere/c.sock", {"config", "check", file}).code, 3);
}

TEST(CliAlone, TiertoolWorksWithoutADaemon) {
  const auto tiers = tiertool({"-j", "tier", "show"});
  EXPECT_TRUE(tiers.code == 0 || tiers.code == 4) << tiers.err;
  EXPECT_EQ(parse(tiers.out).value("schema", 0), 1);
  const auto features = tiertool({"-j", "feature", "probe"});
  EXPECT_TRUE(features.code == 0 || features.code == 4) << features.err;
  EXPECT_EQ(parse(features.out).value("schema", 0), 1);
  EXPECT_NE(tiertool({"tier", "show"}).out, "");
}

class Cli : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!cluster_unavailable()) cluster_ = std::make_unique<Cluster>(ClusterOptions{.nodes = 1});
  }
  static void TearDownTestSuite() { cluster_.reset(); }
  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
  }
  static Outcome tierctl(const Argv& arguments) {
    return tierctl_at(cluster_->address(), arguments);
  }
  static inline std::unique_ptr<Cluster> cluster_;
};

TEST_F(Cli, AnswersAreJsonWithASchema) {
  for (const Argv& arguments :
       {Argv{"-j", "node", "list"}, Argv{"-j", "node", "show", "n1"}, Argv{"-j", "dataset", "list"},
        Argv{"-j", "task", "list"}, Argv{"-j", "policy", "list"},
        Argv{"-j", "policy", "show", "dqn"}}) {
    const auto outcome = tierctl(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(parse(outcome.out).value("schema", 0), 1) << outcome.out;
  }
  EXPECT_NE(tierctl({"node", "list"}).out.find("n1"), std::string::npos);
}

// One of each kind of decision is used.
TEST_F(Cli, PoliciesOfEveryKindOfDecisionAreListed) {
  const auto listed = parse(tierctl({"-j", "policy", "list"}).out);
  std::map<std::string, std::vector<std::string>> active;
  for (const auto& other : listed["others"])
    if (other["active"] == true) active[other["decides"]].push_back(other["name"]);
  const std::map<std::string, std::vector<std::string>> wanted{
      {"units of gangs", {"ac"}}, {"cores of jobs", {"quality"}}, {"shares of units", {"share"}}};
  EXPECT_EQ(active, wanted);
  EXPECT_NE(tierctl({"policy", "list"}).out.find("units of gangs"), std::string::npos);
  const auto refused = tierctl({"policy", "use", "quality"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.err.find("decides cores of jobs"), std::string::npos) << refused.err;
}

TEST_F(Cli, WhatDoesNotExistIsThree) {
  expect_json_error(tierctl({"-j", "node", "show", "n99"}), 3, "n99");
  expect_json_error(tierctl({"-j", "task", "show", "999"}), 3, "999");
  expect_json_error(tierctl({"-j", "task", "logs", "999"}), 3, "999");
  expect_json_error(tierctl({"-j", "dataset", "show", "nothing"}), 3, "nothing");
  EXPECT_EQ(tierctl({"policy", "use", "guessing"}).code, 3);
}

TEST_F(Cli, ATaskFromSubmitToExplain) {
  const auto source = cluster_->folder() / "source.txt";
  std::ofstream(source) << "from a file\n";
  const auto added = tierctl({"-j", "dataset", "add", "text", "--file", source.string()});
  ASSERT_EQ(added.code, 0) << added.err;
  const auto submitted = tierctl({"-j", "task", "submit", "--dataset", "text", "--wait", "--",
                                  "/bin/sh", "-c", "cat $TIERPILOT_DATASET_TEXT"});
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const auto id = parse(submitted.out)["tasks"][0]["id"].dump();
  EXPECT_EQ(tierctl({"task", "logs", id}).out, "from a file\n");
  const auto explained = tierctl({"-j", "task", "explain", id});
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_NE(tierctl({"task", "explain", id}).out.find("n1"), std::string::npos);
}

TEST_F(Cli, FailuresAreOne) {
  EXPECT_EQ(tierctl({"task", "submit", "--wait", "--", "false"}).code, 1);
  expect_json_error(tierctl({"-j", "task", "submit", "--units", "64", "--", "true"}), 1,
                    "64 units");
  const auto job = cluster_->folder() / "job.json";
  std::ofstream(job) << "{\"tasks\": [";
  expect_json_error(tierctl({"-j", "task", "submit", "--file", job.string()}), 1, job.string());
}

TEST_F(Cli, AWaitForACancelledTaskFails) {
  const auto submitted = tierctl({"-j", "task", "submit", "--", "sleep", "1000"});
  ASSERT_EQ(submitted.code, 0) << submitted.err;
  const auto id = parse(submitted.out)["tasks"][0]["id"].dump();
  EXPECT_EQ(tierctl({"-j", "task", "cancel", id}).code, 0);
  const auto waited = tierctl({"-j", "task", "wait", id});
  EXPECT_EQ(waited.code, 1) << waited.out;
  EXPECT_EQ(parse(waited.out)["tasks"][0]["state"], "cancelled");
}

}  // namespace
}  // namespace tierpilot::test
