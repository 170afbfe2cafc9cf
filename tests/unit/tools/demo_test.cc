#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utime.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <sstream>

#include "base/config.h"
#include "base/text/json_text.h"
#include "tools/demo/command_line.h"
#include "tools/demo/daemon_process.h"
#include "tools/demo/layout.h"
#include "tools/demo/progress.h"
#include "tools/demo/report.h"
#include "tools/demo/rounds.h"
#include "tools/demo/runtime_folder.h"
#include "tools/output/output.h"

namespace tierpilot::demo {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

TEST(CommandLine, OptionsCanBeCheckedWithoutARun) {
  int runs = 0;
  const auto ended = [&](std::vector<std::string> words) {
    CLI::App app{"shows something", "demo"};
    int rounds = 1;
    app.add_option("--rounds", rounds, "how many");
    std::string name = "demo";
    std::vector<char*> line{name.data()};
    for (auto& word : words) line.push_back(word.data());
    return parse_and_run(app, static_cast<int>(line.size()), line.data(), [&]() -> Result<int> {
      ++runs;
      return kExitOk;
    });
  };
  EXPECT_EQ(ended({"--rounds", "3", "--check-options"}), kExitOk);
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(ended({"--rounds", "x", "--check-options"}), kExitUsage);
  EXPECT_EQ(ended({"--rounds", "3"}), kExitOk);
  EXPECT_EQ(runs, 1);
}

TEST(Layout, SplitsTheCpus) {
  const auto layout = make_layout(
      {.folder = "/tmp/x", .fast_folder = "/dev/shm/x", .cpus = {0, 1, 2, 3, 6, 7, 8}, .nodes = 3});
  ASSERT_EQ(layout.nodes.size(), 3u);
  EXPECT_EQ(layout.nodes[0].cpus, (std::vector<int>{0, 1}));
  EXPECT_EQ(layout.nodes[1].cpus, (std::vector<int>{2, 3}));
  EXPECT_EQ(layout.nodes[2].cpus, (std::vector<int>{6, 7, 8}));
  EXPECT_EQ(layout.nodes[2].units, 3u);
}

TEST(Layout, FewCpusAreShared) {
  const auto layout = make_layout({.folder = "/tmp/x", .fast_folder = "/y", .cpus = {4, 5}});
  for (const auto& node : layout.nodes) {
    EXPECT_EQ(node.cpus, (std::vector<int>{4, 5}));
    EXPECT_EQ(node.units, 1u);
  }
}

TEST(Layout, ConfigurationsAreTomlWhateverTheFolderIsCalled) {
  const auto layout = make_layout({.folder = "/tmp/a \"b\\c\n",
                                   .fast_folder = "/dev/shm/x",
                                   .cpus = {0, 1, 2},
                                   .fast_budget_bytes = 1 << 20});
  auto reader = ConfigReader::parse(layout.nodes[1].config_text, "n2.toml");
  ASSERT_TRUE(reader) << reader.error().message;
  auto node = reader->section("node");
  EXPECT_EQ(node.text("name", ""), "n2");
  EXPECT_EQ(node.text("work_dir", ""), "/tmp/a \"b\\c\n/n2/work");
  EXPECT_EQ(node.id_list("cpus", {}), std::vector<int>{1});
  EXPECT_EQ(reader->section("pool").bytes("fast_budget", 0), 1u << 20);
  EXPECT_TRUE(ConfigReader::parse(layout.coordinator_config_text, "coordinator.toml"));
}

TEST(RuntimeFolderTest, IsPrivateAndGoesWithItsOwner) {
  fs::path path;
  {
    auto folder = RuntimeFolder::create(testing::TempDir());
    ASSERT_TRUE(folder) << folder.error().message;
    path = folder->path();
    struct stat info {};
    ASSERT_EQ(stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    std::ofstream(path / "file") << "x";
    auto moved = std::move(*folder);
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(RuntimeFolderTest, StaleOnesAreRemovedButNotLockedYoungOrForeignOnes) {
  auto parent = RuntimeFolder::create(testing::TempDir());
  ASSERT_TRUE(parent);
  auto living = RuntimeFolder::create(parent->path());
  const auto young = parent->path() / (std::string(kFolderPrefix) + "young");
  const auto other = parent->path() / "something-else";
  fs::create_directories(young / "data");
  fs::create_directories(other);
  RuntimeFolder::remove_stale(parent->path());
  EXPECT_TRUE(fs::exists(living->path()));
  EXPECT_TRUE(fs::exists(young)) << "its owner may be about to lock it";
  RuntimeFolder::remove_stale(parent->path(), std::chrono::seconds(0));
  EXPECT_TRUE(fs::exists(living->path()));
  EXPECT_FALSE(fs::exists(young));
  EXPECT_TRUE(fs::exists(other));
}

TEST(LastLines, AreTheEndOfAFile) {
  const std::string path = testing::TempDir() + "last-lines.log";
  std::ofstream(path) << "one\ntwo\nthree\nfour\n\n";
  EXPECT_EQ(last_lines(path, 2), "three\nfour");
  EXPECT_EQ(last_lines(path, 100), "one\ntwo\nthree\nfour");
  std::ofstream(path) << std::string(100'000, 'x');
  EXPECT_EQ(last_lines(path, 2).size(), 8192u);
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(last_lines(path, 2), "");
  EXPECT_EQ(last_lines("/nonexistent", 2), "");
  std::remove(path.c_str());
}

TEST(DaemonProcessTest, ADeadOneIsReportedWithItsLog) {
  const std::string log = testing::TempDir() + "daemon.log";
  std::remove(log.c_str());
  auto process =
      DaemonProcess::start("thing", {"/bin/sh", "-c", "echo cannot start >&2; exit 7"}, log);
  ASSERT_TRUE(process) << process.error().message;
  Status status = process->check();
  for (int i = 0; i < 1000 && status; ++i) {
    usleep(10'000);
    status = process->check();
  }
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("thing ended with exit status 7"), std::string::npos);
  EXPECT_NE(status.error().message.find("cannot start"), std::string::npos);
  EXPECT_FALSE(process->check()) << "it stays dead";
  std::remove(log.c_str());
}

TEST(ProgressTest, OverwritesOnATerminalAndIsSparseElsewhere) {
  std::ostringstream out;
  ManualClock clock;
  Progress terminal(out, true, clock);
  terminal.show("a");
  terminal.show(std::string(200, 'b'));
  EXPECT_EQ(out.str(), "\r\x1b[Ka\r\x1b[K" + std::string(79, 'b'));
  out.str("");
  Progress plain(out, false, clock);
  plain.show("a");
  plain.show("b");
  clock.advance_ns(6'000'000'000);
  plain.show("c");
  plain.done("d");
  EXPECT_EQ(out.str(), "a\nc\nd\n");
}

TEST(RewardStatsTest, QuartersAndMissingRewards) {
  const auto stats = reward_stats({1.0, 0.0, std::nullopt, 0.5, 0.5, 0.5, 0.25, 0.75});
  EXPECT_EQ(stats.measured, 7u);
  EXPECT_EQ(*stats.mean, 0.5);
  EXPECT_EQ(*stats.first_quarter, 0.5);
  EXPECT_EQ(*stats.last_quarter, 0.5);
  EXPECT_FALSE(reward_stats({}).mean);
  EXPECT_FALSE(reward_stats({std::nullopt}).last_quarter);
}

PolicyRun run_of(const std::string& name, double reward, bool learns = false) {
  PolicyRun run;
  run.name = name;
  run.rewards.mean = reward;
  if (learns)
    run.learner_start = run.learner_end = ordered_json{{"experiences", 3}, {"loss", nullptr}};
  return run;
}

TEST(Report, HasWhatReadersCountOn) {
  const auto tiers = parse_json<ordered_json>(
      R"([{"node": "n1", "tier": "slow", "kind": "directory", "role": "slow", "latency_ns": null}])");
  const auto report = report_json({}, tiers, {run_of("random", 0.5), run_of("dqn", 0.6, true)});
  EXPECT_EQ(report["schema"], 1);
  EXPECT_TRUE(report["tiers"][0]["latency_ns"]["p50"].is_null());
  EXPECT_EQ(report["tiers"][0]["latency_ns"]["p50_unavailable"], "not reported");
  EXPECT_NE(report["slow_tier"].get<std::string>().find("directory"), std::string::npos);
  for (const char* key : {"name", "tasks", "failed", "wait_ms", "data_ms", "run_ms", "cpu_ms",
                          "response_ms", "utilisation", "cpus_busy", "local_byte_share",
                          "evicted_bytes", "reward_mean", "decision_us", "fallbacks"})
    EXPECT_TRUE(report["policies"][0].contains(key)) << key;
  EXPECT_EQ(report["policies"][0]["utilisation_unavailable"], "no node was up");
  EXPECT_EQ(report["policies"][1]["learner"]["start"]["experiences"], 3);
  EXPECT_FALSE(report["policies"][0].contains("learner"));
}

TEST(Report, ComparesTheLearnedPolicy) {
  const auto text = comparison(
      {run_of("random", 0.5), run_of("locality-greedy", 0.8), run_of("dqn", 0.76, true)});
  EXPECT_NE(text.find("mean reward is 0.760: +52.0 % against random (0.500), -5.0 % against "
                      "locality-greedy"),
            std::string::npos)
      << text;
  EXPECT_EQ(comparison({run_of("dqn", 0.5, true)}), "");
}

// Its tasks took so long in each round.
PolicyRun rounds_of(const std::string& name, const std::vector<int64_t>& response_ms,
                    bool learns = false) {
  std::vector<PolicyRun> rounds;
  for (const int64_t ms : response_ms) {
    auto run = run_of(name, 0.5, learns);
    run.reward_list = {0.5};
    run.wall_s = 2;
    run.utilisation = static_cast<double>(ms) / 1000;
    run.cpus_busy = static_cast<double>(ms) / 500;
    run.tasks = {
        {.id = 1, .succeeded = true, .submitted_ms = 1, .started_ms = 2, .finished_ms = 1 + ms}};
    run.summary = tierload::summarize(run.tasks);
    rounds.push_back(run);
  }
  return pooled(rounds);
}

TEST(Rounds, ArePooled) {
  const auto run = rounds_of("dqn", {100, 200, 300}, true);
  EXPECT_EQ(run.summary.tasks, 3u);
  EXPECT_DOUBLE_EQ(run.summary.response_ms->mean, 200);
  EXPECT_EQ(run.round_response_ms, (std::vector<double>{100, 200, 300}));
  EXPECT_DOUBLE_EQ(run.wall_s, 6);
  EXPECT_DOUBLE_EQ(*run.utilisation, 0.2);
  EXPECT_DOUBLE_EQ(*run.cpus_busy, 0.4);
  EXPECT_EQ(run.rewards.measured, 3u);
}

TEST(Rounds, BeginWithAnotherPolicyEach) {
  EXPECT_EQ(order_of_round({"a", "b", "c"}, 0), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(order_of_round({"a", "b", "c"}, 4), (std::vector<std::string>{"b", "c", "a"}));
  EXPECT_TRUE(order_of_round({}, 3).empty());
}

TEST(Rounds, ADifferenceIsByPairsAndSaysWhetherItIsNoise) {
  const auto slow = rounds_of("least-loaded", {100, 200, 400});
  // Rounds differ by far more than the policies do in each of them.
  const auto clear = response_difference(rounds_of("dqn", {90, 180, 361}, true), slow);
  ASSERT_TRUE(clear);
  EXPECT_NEAR(clear->percent, -10, 0.2);
  EXPECT_TRUE(clear->more_than_noise());
  EXPECT_LT(clear->high, 0);
  const auto unclear = response_difference(rounds_of("dqn", {50, 250, 300}, true), slow);
  ASSERT_TRUE(unclear);
  EXPECT_FALSE(unclear->more_than_noise());
  EXPECT_LT(unclear->low, unclear->percent);
  EXPECT_FALSE(response_difference(rounds_of("dqn", {90}, true), rounds_of("random", {100})));
}

TEST(Rounds, TheReportSaysBoth) {
  const std::vector<PolicyRun> runs{rounds_of("random", {300, 300}),
                                    rounds_of("least-loaded", {100, 200}),
                                    rounds_of("dqn", {90, 180}, true)};
  EXPECT_EQ(best_heuristic(runs)->name, "least-loaded");
  const auto text = comparison(runs);
  EXPECT_NE(text.find("dqn's mean response is 135.0 ms, -10.0 % against the best heuristic's "
                      "(least-loaded, 150.0 ms)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("more than noise"), std::string::npos) << text;
  const auto report = report_json({}, ordered_json::array(), runs);
  EXPECT_EQ(report["response_difference"]["against"], "least-loaded");
  EXPECT_EQ(report["response_difference"]["more_than_noise"], true);
}

TEST(Report, PrintsTables) {
  std::ostringstream out;
  print_report(out, report_json({}, ordered_json::array(), {run_of("dqn", 0.76, true)}));
  EXPECT_NE(out.str().find("Where dqn stood"), std::string::npos);
  EXPECT_NE(out.str().find("0.76"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::demo
