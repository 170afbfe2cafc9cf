// What quickstart runs once all is built: a cluster of real programs, the policies compared, and
// nothing left behind.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/text/json_text.h"
#include "tests/system/cluster.h"

namespace tierpilot::test {
namespace {

namespace fs = std::filesystem;

class Demo : public testing::Test {
 protected:
  static constexpr std::chrono::seconds kWhole{150};

  void SetUp() override {
    if (const auto why = cluster_unavailable()) GTEST_SKIP() << *why;
    before_ = fast_folders();
  }

  Argv demo(const Argv& more) const {
    Argv argv{"/usr/bin/env", "TMPDIR=" + folder_.path().string(), program("TIERPILOT_TEST_DEMO"),
              "--datasets", "4"};
    argv.insert(argv.end(), more.begin(), more.end());
    return argv;
  }
  static std::set<fs::path> fast_folders() {
    std::set<fs::path> found;
    for (const auto& entry : fs::directory_iterator("/dev/shm"))
      if (entry.path().filename().string().starts_with("tierpilot-demo-"))
        found.insert(entry.path());
    return found;
  }
  // Another demo of this machine may end meanwhile: only what is new counts.
  void expect_nothing_left() const {
    for (const auto& path : fast_folders()) EXPECT_TRUE(before_.contains(path)) << path;
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with("tierpilot-demo-")) << entry.path();
    EXPECT_EQ(processes_that_name(folder_.path().string()), "");
  }
  static std::string processes_that_name(const std::string& text) {
    std::string found;
    for (const auto& entry : fs::directory_iterator("/proc")) {
      const auto name = entry.path().filename().string();
      if (name.find_first_not_of("0123456789") != std::string::npos) continue;
      const auto command = read_text(entry.path() / "cmdline");
      if (command.find(text) != std::string::npos && is_alive(std::stoi(name)))
        found += command + "\n";
    }
    return found;
  }

  TempFolder folder_{"/var/tmp"};
  std::set<fs::path> before_;
};

TEST_F(Demo, ComparesPoliciesAndWritesWhatItShows) {
  const auto file = folder_.path() / "shown.json";
  const auto outcome =
      run_command(demo({"--rounds", "2", "--tasks", "12", "--seconds", "1", "--work", "0.2",
                        "--policies", "least-loaded,dqn", "--json", file.string()}),
                  {}, kWhole);
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  for (const char* shown : {"POLICY", "least-loaded", "dqn (cold)", "Where dqn stood", "TIER"})
    EXPECT_NE(outcome.out.find(shown), std::string::npos) << shown << "\n" << outcome.out;

  const auto json = parse_json<Json>(read_text(file));
  EXPECT_EQ(json["schema"], 1);
  ASSERT_EQ(json["tiers"].size(), 6u) << "two of each node";
  for (const auto& tier : json["tiers"]) {
    EXPECT_GT(tier["latency_ns"]["p50"], 0);
    EXPECT_GT(tier["read_gb_per_s"], 0);
    EXPECT_TRUE(tier.contains("evict_gb_per_s") && tier.contains("promote_gb_per_s"));
  }
  ASSERT_EQ(json["policies"].size(), 3u);
  for (const auto& policy : json["policies"]) {
    EXPECT_EQ(policy["tasks"], policy["name"] == "dqn (cold)" ? 12 : 24) << policy;
    EXPECT_EQ(policy["failed"], 0) << policy;
    EXPECT_GT(policy["response_ms"]["mean"], policy["wait_ms"]["mean"]);
    EXPECT_TRUE(policy["reward_mean"].is_number());
    EXPECT_GT(policy["decision_us"]["p50"], 0);
  }
  EXPECT_EQ(json["response_difference"]["rounds"], 2);
  EXPECT_EQ(json["response_difference"]["against"], "least-loaded");
  EXPECT_NE(outcome.out.find("95 % over 2"), std::string::npos) << outcome.out;
  expect_nothing_left();
}

TEST_F(Demo, AnInterruptLeavesNothingBehind) {
  const auto log = folder_.path() / "log";
  Process process(demo({"--tasks", "2000", "--policies", "random"}), log);
  // Tasks run by then.
  ASSERT_TRUE(eventually([&] { return read_text(log).find(" done, ") != std::string::npos; }))
      << read_text(log);
  process.signal(SIGINT);
  const auto status = process.wait();
  ASSERT_TRUE(status) << "it goes on: " << read_text(log);
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 128 + SIGINT) << *status;
  EXPECT_NE(read_text(log).find("stopped by a signal"), std::string::npos) << read_text(log);
  expect_nothing_left();
}

}  // namespace
}  // namespace tierpilot::test
