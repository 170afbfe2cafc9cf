// "top" of tiertool: readings of made-up machines, and what is made of two of them.
#include <gmock/gmock.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/text/json_text.h"
#include "tests/support/scratch_directory.h"
#include "tools/output/arguments.h"
#include "tools/tiertool/object.h"
#include "tools/tiertool/top_view.h"

namespace tierpilot::tiertool {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kStat =
    "42 (a (b) c) S 1 42 42 0 -1 4194304 100 7 3 0 11 5 0 0 20 0 1 0 777 9000000 25 184467";

TEST(TopReading, ANameMayHaveSpacesAndParentheses) {
  const auto process = parse_process_stat(kStat, 4096);
  ASSERT_TRUE(process) << process.error().message;
  EXPECT_EQ(process->pid, 42);
  EXPECT_EQ(process->name, "a (b) c");
  EXPECT_EQ(process->faults, 103U);
  EXPECT_EQ(process->major_faults, 3U);
  EXPECT_EQ(process->cpu_ticks, 16U);
  EXPECT_EQ(process->start_ticks, 777U);
  EXPECT_EQ(process->resident_bytes, 25U * 4096);
}

TEST(TopReading, WhatIsNoStatIsRefused) {
  for (const char* line : {"", "x", "42", "42 (a", "42 a) S 1", "42 (a) S 1 2", ") ( 1", "(a) S"})
    EXPECT_FALSE(parse_process_stat(line, 4096)) << line;
}

class TopOnMadeUpMachine : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const auto file = std::filesystem::path(root_.path() + path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void write_machine() {
    write("/proc/vmstat", "pgfault 1000\npgmigrate_success 50\npgdemote_kswapd 7\n");
    write("/proc/pressure/memory",
          "some avg10=2.50 avg60=0 avg300=0 total=1\nfull avg10=1.25 avg60=0 avg300=0 total=1\n");
    write("/sys/devices/system/node/has_memory", "0-1\n");
    write("/sys/devices/system/node/online", "0-1\n");
    for (const char* node : {"0", "1"})
      write(std::string("/sys/devices/system/node/node") + node + "/meminfo",
            std::string("Node ") + node + " MemTotal:  1000 kB\nNode " + node +
                " MemFree:   250 kB\n");
    write("/proc/42/stat", kStat);
    write("/proc/42/numa_maps", "1000 default anon=25 N0=5 N1=20 kernelpagesize_kB=4\n");
    write("/proc/43/stat", "43 (kernel) S 2 0 0 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 7 0 0 0");
    write("/proc/self/stat", kStat);
  }
  MachineReading read(int64_t boot_ns) {
    auto machine = read_machine(Sysroot(root_.path()), boot_ns);
    EXPECT_TRUE(machine) << machine.error().message;
    return *machine;
  }

  ScratchDirectory root_;
  const std::vector<PagingTier> tiers_{{.name = "near", .nodes = {0}, .latency_ns = 90},
                                       {.name = "far", .nodes = {1}, .latency_ns = 400}};
};

TEST_F(TopOnMadeUpMachine, ReadsNodesCountersPressureAndProcesses) {
  write_machine();
  const auto machine = read(5);
  ASSERT_EQ(machine.nodes.size(), 2U);
  EXPECT_EQ(machine.nodes[1].free_bytes, 250U << 10);
  EXPECT_EQ(machine.vmstat.at("pgfault"), 1000U);
  EXPECT_DOUBLE_EQ(machine.pressure_some_share.value(), 0.025);
  ASSERT_EQ(machine.processes.size(), 1U) << "kernel threads have no memory";
  EXPECT_EQ(machine.processes[0].pid, 42);
}

TEST_F(TopOnMadeUpMachine, WithoutProcItSaysSo) {
  EXPECT_FALSE(read_machine(Sysroot(root_.path()), 0));
}

TEST_F(TopOnMadeUpMachine, RatesAreDifferencesOverTime) {
  write_machine();
  const auto before = read(1'000'000'000);
  auto now = read(3'000'000'000);
  now.vmstat["pgfault"] = 1500;
  now.processes[0].faults += 40;
  now.processes[0].cpu_ticks += static_cast<uint64_t>(::sysconf(_SC_CLK_TCK));
  const auto value = top_value({before, now, tiers_}, TopOrder::kMemory, 10);
  EXPECT_DOUBLE_EQ(value["per_second"]["faults"].get<double>(), 250);
  EXPECT_DOUBLE_EQ(value["per_second"]["demoted_pages"].get<double>(), 0);
  EXPECT_TRUE(value["per_second"]["promoted_pages"].is_null()) << "this kernel does not count it";
  EXPECT_DOUBLE_EQ(value["processes"][0]["faults_per_s"].get<double>(), 20);
  EXPECT_DOUBLE_EQ(value["processes"][0]["cpu_share"].get<double>(), 0.5);
}

TEST_F(TopOnMadeUpMachine, AProcessOfTheSamePidIsAnotherOne) {
  write_machine();
  const auto before = read(0);
  auto now = read(1'000'000'000);
  now.processes[0].start_ticks = 999;
  now.processes[0].faults = 5;
  const auto value = top_value({before, now, tiers_}, TopOrder::kMemory, 10);
  EXPECT_DOUBLE_EQ(value["processes"][0]["faults_per_s"].get<double>(), 5);
}

TEST_F(TopOnMadeUpMachine, KnowsWhereProcessesHaveTheirPages) {
  write_machine();
  const Sysroot sysroot(root_.path());
  NodeShares shares(sysroot);
  auto machine = read(1);
  shares.fill(machine, 10, 1'000'000'000);
  ASSERT_TRUE(machine.processes[0].bytes_on_node);
  EXPECT_EQ(machine.processes[0].bytes_on_node->at(1), 20U * 4096);
  // Without time for a new look it tells the latest one.
  write("/proc/42/numa_maps", "1000 default anon=25 N0=25 kernelpagesize_kB=4\n");
  auto later = read(2);
  shares.fill(later, 10, 0);
  EXPECT_EQ(later.processes[0].bytes_on_node->at(1), 20U * 4096);
  const auto value = top_value({machine, later, tiers_}, TopOrder::kSlow, 10);
  EXPECT_EQ(value["processes"][0]["slow_bytes"], 20 * 4096);
  EXPECT_THAT(top_text(value), HasSubstr("NODE 1"));
}

TEST(TopView, OrdersAndCutsTheProcesses) {
  const std::vector<PagingTier> tiers{{.name = "near", .nodes = {0}}};
  MachineReading before, now;
  now.boot_ns = 1'000'000'000;
  now.processes = {{.pid = 1, .name = "big", .resident_bytes = 9000},
                   {.pid = 2, .name = "busy", .resident_bytes = 10, .faults = 70},
                   {.pid = 3, .name = "\x1b[2Jevil", .resident_bytes = 5, .cpu_ticks = 9}};
  const auto first = [&](TopOrder order) {
    const auto value = top_value({before, now, tiers}, order, 1);
    EXPECT_EQ(value["processes"].size(), 1U);
    return value["processes"][0]["pid"].get<int>();
  };
  EXPECT_EQ(first(TopOrder::kMemory), 1);
  EXPECT_EQ(first(TopOrder::kFaults), 2);
  EXPECT_EQ(first(TopOrder::kCpu), 3);
  EXPECT_THAT(top_text(top_value({before, now, tiers}, TopOrder::kMemory, 9)),
              Not(HasSubstr("\x1b")));
}

class TopCommand : public ::testing::Test {
 protected:
  int run(std::vector<const char*> words) {
    context_.output = {false, out_, err_};
    CLI::App app{"", "tiertool"};
    app.require_subcommand(1);
    add_top(app, context_);
    words.insert(words.begin(), {"tiertool", "top"});
    const auto code =
        parse_arguments(app, static_cast<int>(words.size()), words.data(), context_.output);
    return code ? *code : context_.command();
  }

  std::ostringstream out_, err_;
  Context context_;
};

TEST_F(TopCommand, PrintsALineOfJsonForEachLook) {
  ASSERT_EQ(run({"--count", "2", "--interval", "0.1", "--limit", "3", "-j"}), kExitOk)
      << err_.str();
  std::istringstream lines(out_.str());
  std::string line;
  size_t looks = 0;
  for (; std::getline(lines, line); ++looks) {
    const auto value = parse_json<ordered_json>(line);
    EXPECT_EQ(value["schema"], 1);
    EXPECT_GT(value["interval_s"], 0.05);
    EXPECT_LE(value["processes"].size(), 3U);
  }
  EXPECT_EQ(looks, 2U);
}

TEST_F(TopCommand, WrongWordsAreUsageErrors) {
  EXPECT_EQ(run({"--order", "size"}), kExitUsage);
  EXPECT_THAT(err_.str(), HasSubstr("memory, slow, faults or cpu"));
  EXPECT_EQ(run({"--interval", "0"}), kExitUsage);
}

}  // namespace
}  // namespace tierpilot::tiertool
