// tierctl policy evaluate: the suites that are not of tasks, and their options.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "tests/system/cluster.h"
#include "tests/system/command_line.h"

namespace tierpilot::test {
namespace {

using ::testing::HasSubstr;

TEST(LabSuites, AnOptionOfAnotherSuiteIsRefusedAndAllSuitesAreNamed) {
  const auto evaluate = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"policy", "evaluate"};
    words.insert(words.end(), more.begin(), more.end());
    return tierctl_at("unix:/nowhere/c.sock", words);
  };
  const auto of_gangs = evaluate({"--suite", "quality", "--max-gpus", "16"});
  EXPECT_EQ(of_gangs.code, 2);
  EXPECT_THAT(of_gangs.err, HasSubstr("--max-gpus is for --suite gangs"));
  EXPECT_THAT(evaluate({"--in-time"}).err, HasSubstr("--in-time is for --suite sharing"));
  EXPECT_THAT(evaluate({"--trace", "x"}).err,
              HasSubstr("--trace is for --suite gangs and --suite sharing"));
  EXPECT_THAT(evaluate({"--cells", "x"}).err, HasSubstr("--cells is for --suite quality"));
  for (const char* flag : {"--no-guard", "--no-hold", "--learn"})
    EXPECT_THAT(evaluate({"--suite", "sharing", flag}).err,
                HasSubstr(std::string(flag) + " is for --suite quick|short|full|wide"));
  for (const char* option : {"--plots", "--plain", "--weights"})
    EXPECT_EQ(evaluate({"--suite", "quality", option, "x"}).code, 2) << option;
  for (const auto& [suite, option, name] :
       {std::tuple("quality", "--policies", "fair"), std::tuple("quality", "--cells", "x"),
        std::tuple("gangs", "--policies", "random"), std::tuple("sharing", "--policies", "fgd")}) {
    const auto twice = evaluate({"--suite", suite, option, fmt::format("{0},{0}", name)});
    EXPECT_EQ(twice.code, 2) << suite;
    EXPECT_THAT(twice.err, HasSubstr(fmt::format("{}: '{}' is named twice", option, name)));
  }
  EXPECT_THAT(evaluate({"--suite", "none"}).err,
              HasSubstr("quick, short, full, wide, gangs, quality, sharing"));
}

TEST(LabSuites, PodsThatNoNodeWillDoForAreWarnedOf) {
  const std::filesystem::path folder = testing::TempDir();
  std::ofstream(folder / "pods.csv")
      << "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\na,1000,100,1,500,T4\n"
         "b,1000,100,1,500,\nc,1000,100,8,1000,\nd,1000,100,0,0,\n";
  std::ofstream(folder / "nodes.csv") << "sn,cpu_milli,memory_mib,gpu,model\nn,64000,100000,2,G2\n";
  const auto outcome = tierctl_at(
      "unix:/nowhere/c.sock",
      {"policy", "evaluate", "--suite", "sharing", "--seeds", "1", "--policies", "share", "--pods",
       (folder / "pods.csv").string(), "--nodes", (folder / "nodes.csv").string(), "-j"});
  ASSERT_EQ(outcome.code, 4) << "with a warning: " << outcome.err;
  EXPECT_EQ(parse(outcome.out)["trace"]["pods_without_node"], 2);
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("2 of 4 pods fit on no node"));
}

}  // namespace
}  // namespace tierpilot::test
