// "tier", "probe" and what "move" sees, of tiertool, on fake machines and on this one.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/text/json_text.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;

class TiertoolTest : public ::testing::Test {
 protected:
  TiertoolTest() { context_.output = {false, out_, err_}; }

  void use_machine(const std::string& name) {
    context_.sysroot = Sysroot(std::string(SYSROOTS "/") + name);
    context_.foreign_root = true;
    context_.discover.nvml_library.clear();
  }

  int run(std::vector<const char*> args) {
    CLI::App app{"", "tiertool"};
    app.require_subcommand(1);
    add_tier(app, context_);
    add_probe(app, context_);
    add_move(app, context_);
    args.insert(args.begin(), "tiertool");
    const auto code =
        parse_arguments(app, static_cast<int>(args.size()), args.data(), context_.output);
    return code ? *code : context_.command();
  }

  std::ostringstream out_, err_;
  Context context_;
};

TEST_F(TiertoolTest, ShowsAnotherMachinesTreeAndTiers) {
  use_machine("gap_cxl");
  EXPECT_EQ(run({"tier", "show"}), kExitOk) << err_.str();
  EXPECT_NE(out_.str().find("└── "), std::string::npos);
  EXPECT_NE(out_.str().find("cxl3   cxl   16.0 GiB"), std::string::npos) << out_.str();
}

TEST_F(TiertoolTest, JsonHoldsTopologyAndTiers) {
  use_machine("dax_kmem");
  EXPECT_EQ(run({"tier", "show", "-j"}), kExitOk) << err_.str();
  const auto value = parse_json<ordered_json>(out_.str());
  EXPECT_EQ(value["schema"], 1);
  EXPECT_EQ(value["topology"]["nodes"].size(), 4U);
  EXPECT_EQ(value["tiers"][1]["tier"], "pmem2");
}

TEST_F(TiertoolTest, AMachineThatCannotBeReadWellIsDegraded) {
  use_machine("malformed");
  EXPECT_EQ(run({"tier", "show", "-j"}), kExitDegraded);
  EXPECT_FALSE(parse_json<ordered_json>(out_.str())["warnings"].empty());
}

TEST_F(TiertoolTest, AnUnknownTierNamesThoseThereAre) {
  use_machine("gap_cxl");
  EXPECT_EQ(run({"tier", "show", "--tier", "pmem9"}), kExitNotFound);
  EXPECT_NE(err_.str().find("dram0, cxl3"), std::string::npos) << err_.str();
}

TEST_F(TiertoolTest, AnotherMachineCannotBeProbed) {
  use_machine("gap_cxl");
  EXPECT_EQ(run({"probe", "latency"}), kExitUsage);
}

TEST_F(TiertoolTest, AMissingDirectoryIsNotFound) {
  EXPECT_EQ(run({"probe", "eviction", "--dir", "/nonexistent/tier"}), kExitNotFound);
  EXPECT_NE(err_.str().find("/nonexistent/tier"), std::string::npos);
}

TEST_F(TiertoolTest, RoundsHaveARange) {
  EXPECT_EQ(run({"probe", "latency", "--rounds", "0"}), kExitUsage);
  EXPECT_NE(err_.str().find("--rounds"), std::string::npos);
}

TEST_F(TiertoolTest, ProbesThisMachine) {
  const int code = run({"probe", "latency", "--rounds", "1", "-j"});
  ASSERT_TRUE(code == kExitOk || code == kExitDegraded) << err_.str();
  const auto value = parse_json<ordered_json>(out_.str());
  const auto& tier = value["tiers"].at(0);
  EXPECT_TRUE(tier["latency_ns"]["p50"].is_number() ||
              tier["latency_ns"].contains("p50_unavailable"));
  EXPECT_EQ(tier["read_gb_per_s_unavailable"], "not asked for");
}

TEST_F(TiertoolTest, MoveStatTellsEveryFigureOrWhyNot) {
  if (run({"move", "stat", "--seconds", "0.2", "-j"}) == kExitFailed)
    GTEST_SKIP() << "no BPF here: " << err_.str();
  const auto value = parse_json<ordered_json>(out_.str());
  for (const std::string key : {"pages_moved", "pages_failed", "watched_pages_share"})
    EXPECT_NE(value[key].is_null(), !value.contains(key + "_unavailable")) << value;
  EXPECT_TRUE(value["watched_time_share"].is_number());
  EXPECT_TRUE(value["watched_calls"].is_number());
  for (const auto& row : value["migrations"])
    for (const std::string key : {"from_node", "to_node", "gb_per_s"})
      EXPECT_NE(row[key].is_null(), !row.contains(key + "_unavailable")) << row;
  EXPECT_TRUE(value["numa_hint"].is_null() || value["numa_hint"]["faults"].is_number());
  for (const auto& row : value["waits"]) EXPECT_TRUE(row["count"].is_number()) << row;
}

TEST_F(TiertoolTest, MoveStatRefusesACgroupThatIsNone) {
  EXPECT_EQ(run({"move", "stat", "--seconds", "0.1", "--cgroup", "tierpilot-none"}), kExitFailed);
  EXPECT_NE(err_.str().find("/sys/fs/cgroup/tierpilot-none is no directory"), std::string::npos)
      << err_.str();
}

TEST_F(TiertoolTest, MoveStatWithFaultsHasTimesOrIsDegraded) {
  const int code = run({"move", "stat", "--seconds", "0.2", "--faults", "-j"});
  if (code == kExitFailed) GTEST_SKIP() << "no BPF here: " << err_.str();
  const auto value = parse_json<ordered_json>(out_.str());
  EXPECT_EQ(value.contains("fault_times"), code == kExitOk);
  EXPECT_EQ(value.contains("warnings"), code == kExitDegraded);
}

TEST_F(TiertoolTest, MoveTraceInJsonIsAnObjectPerLine) {
  if (run({"move", "trace", "--seconds", "0.2", "-j"}) == kExitFailed)
    GTEST_SKIP() << "no BPF here: " << err_.str();
  std::istringstream lines(out_.str());
  for (std::string line; std::getline(lines, line);)
    EXPECT_EQ(parse_json<ordered_json>(line)["schema"], 1) << line;
}

TEST_F(TiertoolTest, MoveTraceEndsWellOnCtrlC) {
  sigset_t interrupt, before;
  ::sigemptyset(&interrupt);
  ::sigaddset(&interrupt, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &interrupt, &before);
  std::thread user([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ::kill(::getpid(), SIGINT);
  });
  const int code = run({"move", "trace", "--seconds", "0"});
  user.join();
  // Where the trace did not start, the signal is still to be taken.
  constexpr timespec kNow{};
  ::sigtimedwait(&interrupt, nullptr, &kNow);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (code == kExitFailed) GTEST_SKIP() << "no BPF here: " << err_.str();
  const bool knows_nodes = err_.str().find("warning: nodes") == std::string::npos;
  EXPECT_EQ(code, knows_nodes ? kExitOk : kExitDegraded);
  EXPECT_TRUE(out_.str().starts_with("     AT s FROM   TO REASON")) << out_.str();
}

}  // namespace
}  // namespace tierpilot::tiertool
