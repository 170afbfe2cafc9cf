// What "swap" of tiertool refuses, and how.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/swap/logs.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

struct Ran {
  int code;
  std::string out, err;
};

Ran run(std::vector<std::string> words, bool json = false) {
  std::ostringstream out, err;
  Context context;
  context.output = {json, out, err};
  CLI::App app{"", "tiertool"};
  app.require_subcommand(1);
  add_swap(app, context);
  std::vector<const char*> args{"tiertool", "swap"};
  for (const auto& word : words) args.push_back(word.c_str());
  const auto ended =
      parse_arguments(app, static_cast<int>(args.size()), args.data(), context.output);
  const int code = ended ? *ended : context.command();
  return {code, out.str(), err.str()};
}

TEST(TiertoolSwap, WhatIsWrongIsRefusedBeforeAnythingIsReplayed) {
  const swap::TextFile log(swap::kExampleLog);
  const auto path = log.path().string();
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--seed", "-1"}, "--seed: -1 is no whole number"},
      {{"--seed", "99999999999999999999999"}, "no whole number"},
      {{"--seed", "1.5"}, "no whole number"},
      {{"--seed", ""}, "no whole number"},
      {{"--net", "vgg"}, "say --format operators"},
      {{"--net", ""}, "say --format operators"},
      {{"--net", "vgg", "--format", "step"}, "say --format operators"},
      {{"--budget", ""}, "--budget: '' is not a size"},
      {{"--budget", "-5"}, "--budget: '-5' is not a size"},
      {{"--policy", "swap,nix"}, "--policy: nix not in {swap,"},
      {{"--policy", ""}, "--policy"},
      {{"--latency", "5"}, "--latency requires --bandwidth"},
      {{"--tiers", ""}, "--tiers: a file is needed"},
      {{"--tier", "dram0"}, "--tier requires --tiers"},
  };
  for (const auto& [words, said] : wrong) {
    std::vector<std::string> line{"replay", path, "--budget-ratio", "1"};
    line.insert(line.end(), words.begin(), words.end());
    const auto ran = run(line);
    EXPECT_EQ(ran.code, kExitUsage) << words.front() << ' ' << words.back();
    EXPECT_NE(ran.err.find(said), std::string::npos) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

TEST(TiertoolSwap, WhatIsRightIsReplayed) {
  const swap::TextFile log(swap::kExampleLog);
  const auto ran = run({"replay", log.path().string(), "--budget", "1MiB", "--policy",
                        "swap,optimum", "--seed", "7", "--bandwidth", "1", "--latency", "5"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_NE(ran.out.find("optimum"), std::string::npos) << ran.out;
}

TEST(TiertoolSwap, AFileOfTiersIsTheLink) {
  const swap::TextFile log(swap::kExampleLog);
  const auto replayed = [&](const std::string& tiers, std::vector<std::string> words = {}) {
    const swap::TextFile file(tiers);
    words.insert(words.begin(), {"replay", log.path().string(), "--budget", "1MiB", "--policy",
                                 "swap", "--tiers", file.path().string()});
    return run(words, true);
  };
  const std::string fast = R"({"tier": "dram0", "read_gb_per_s": 20, "write_gb_per_s": 10,
                              "latency_ns": {"p50": 90}})";
  const std::string slow = R"({"tier": "directory0", "read_gb_per_s": 2, "write_gb_per_s": 1.5,
                              "latency_ns": {"p50": 80000}})";
  const auto two = R"({"tiers": [)" + fast + ", " + slow + "]}";
  const auto below = replayed(two);
  EXPECT_EQ(below.code, kExitOk) << below.err;
  EXPECT_NE(below.out.find(R"("bandwidth_gb_per_s": 1.5)"), std::string::npos) << below.out;
  EXPECT_NE(below.out.find(R"("latency_us": 80.0)"), std::string::npos) << below.out;
  EXPECT_NE(replayed(two, {"--tier", "dram0"}).out.find(R"("bandwidth_gb_per_s": 10.0)"),
            std::string::npos);
  for (const auto& [tiers, name, said] : std::vector<std::array<std::string, 3>>{
           {"{", "", "no JSON object with a list"},
           {R"({"tiers": [)" + fast + "]}", "", "no second tier"},
           {two, "cxl1", "no tier 'cxl1'"},
           {R"({"tiers": [3, {"tier": "x", "read_gb_per_s": 1}]})", "x", "was not measured"},
           {R"({"tiers": [3, []]})", "", "was not measured"}}) {
    const auto ran = name.empty() ? replayed(tiers) : replayed(tiers, {"--tier", name});
    EXPECT_EQ(ran.code, kExitFailed) << tiers;
    EXPECT_NE(ran.err.find(said), std::string::npos) << ran.err;
  }
  EXPECT_EQ(replayed(two, {"--bandwidth", "1"}).code, kExitUsage);
}

// The bound is reckoned, and vdnn refuses a net without convolutions.
TEST(TiertoolSwap, WhatWasNotReplayedHasNoFiguresOfAReplay) {
  const swap::TextFile log(swap::kExampleLog);
  const auto ran = run({"replay", log.path().string(), "--budget", "1MiB", "--policy", "bound,vdnn",
                        "--bandwidth", "1"});
  EXPECT_EQ(ran.code, kExitOk) << ran.err;
  EXPECT_EQ(ran.out.find("0 B"), std::string::npos) << ran.out;
}

TEST(TiertoolSwap, ALogWithoutANameIsRefused) {
  const auto ran = run({"record", "--log", "", "--", "true"});
  EXPECT_EQ(ran.code, kExitUsage);
  EXPECT_NE(ran.err.find("--log: a file needs a name"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace tierpilot::tiertool
