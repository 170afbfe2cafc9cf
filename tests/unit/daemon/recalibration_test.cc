// A calibration that follows the machine, and what is taken over when tiers are measured again.
#include "daemon/agent/calibration/recalibration.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/support/scratch_directory.h"

namespace tierpilot::agent {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kSecond_ns = 1'000'000'000;

TierMeasurement tier(const std::string& name, int node, double latency_ns, double spread = 0.02) {
  TierMeasurement made;
  made.tier = {.name = name, .kind = "dram", .numa_node = node, .capacity_bytes = 1 << 30};
  if (node < 0) made.tier.directory = "/slow";
  made.latency_p50_ns.value = latency_ns;
  made.latency_p99_ns.value = 2 * latency_ns;
  made.read_gb_per_s.value = 1000 / latency_ns;
  made.evict_gb_per_s.value = 1.5;
  made.evidence["latency_ns"] = {spread, 3};
  made.surroundings = {.cpus = 2, .others_cpu_share = 0.0};
  return made;
}

Calibration calibration() {
  Calibration made;
  made.tiers = {tier("dram0", 0, 90), tier("dram1", 1, 140), tier("directory0", -1, 50'000)};
  made.fast = 0;
  made.slow = 1;
  return made;
}

std::vector<std::string> names(const Calibration& calibration) {
  std::vector<std::string> names;
  for (const auto& tier : calibration.tiers) names.push_back(tier.tier.name);
  return names;
}

TEST(TakeOver, NewFiguresReplaceOldOnesAndMissingOnesDoNot) {
  auto known = calibration();
  auto now = tier("dram0", 0, 120);
  now.evict_gb_per_s = {std::nullopt, "no slower tier"};
  take_over(known, {now});
  EXPECT_EQ(known.fast_tier().latency_p50_ns.value, 120);
  EXPECT_EQ(known.fast_tier().evict_gb_per_s.value, 1.5);
  EXPECT_EQ(known.slow_tier().latency_p50_ns.value, 140);
}

TEST(TakeOver, ANoisyMeasurementDoesNotReplaceAGoodOne) {
  auto known = calibration();
  take_over(known, {tier("dram0", 0, 400, 0.9)});
  EXPECT_EQ(known.fast_tier().latency_p50_ns.value, 90);
  known.tiers[0] = tier("dram0", 0, 90, 0.9);
  take_over(known, {tier("dram0", 0, 100, 0.9)});
  EXPECT_EQ(known.fast_tier().latency_p50_ns.value, 100) << "neither is better";
}

TEST(TakeOver, RanksAnewButThePoolKeepsItsTiers) {
  auto known = calibration();
  take_over(known, {tier("dram0", 0, 300), tier("dram1", 1, 100)});
  EXPECT_EQ(names(known), (std::vector<std::string>{"dram1", "dram0", "directory0"}));
  EXPECT_EQ(known.fast_tier().tier.name, "dram0");
  EXPECT_EQ(known.slow_tier().tier.name, "dram1");
  EXPECT_FALSE(known.evict_gb_per_s()) << "dram0 is no longer measured against dram1";
}

TEST(TakeOver, UnknownTiersAreIgnored) {
  auto known = calibration();
  take_over(known, {tier("cxl9", 9, 10)});
  EXPECT_EQ(names(known).size(), 3U);
}

Topology machine(std::vector<int> nodes) {
  Topology topology;
  for (const int id : nodes)
    topology.nodes.push_back({.id = id, .cpus = {id}, .memory_total_bytes = 2ULL << 30});
  return topology;
}

TEST(Follow, ANodeThatCameIsATierWithoutFigures) {
  auto known = calibration();
  EXPECT_TRUE(follow(known, machine({0, 1, 2})).empty());
  EXPECT_EQ(names(known), (std::vector<std::string>{"dram0", "dram1", "directory0", "dram2"}));
  EXPECT_EQ(known.tiers.back().latency_p50_ns.unavailable, "came online and was not measured yet");
  EXPECT_EQ(known.tiers[0].tier.capacity_bytes, 2ULL << 30) << "sizes are followed too";
  EXPECT_EQ(known.tiers[0].latency_p50_ns.value, 90);
  EXPECT_EQ(remeasurable(known).size(), 3U);
}

TEST(Follow, ANodeThatWentIsGone) {
  auto known = calibration();
  follow(known, machine({0, 1, 2}));
  EXPECT_TRUE(follow(known, machine({0, 1})).empty());
  EXPECT_EQ(names(known), (std::vector<std::string>{"dram0", "dram1", "directory0"}));
}

TEST(Follow, ThePoolsTierStaysWithTheReasonAndIsComplainedOf) {
  auto known = calibration();
  const auto told = follow(known, machine({0}));
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told[0].find("slow tier dram1 went offline"), std::string::npos) << told[0];
  EXPECT_EQ(known.slow_tier().tier.name, "dram1");
  EXPECT_EQ(known.slow_tier().latency_p50_ns.unavailable, "node 1 went offline");
}

TEST(TierMetrics, NameTheTierAndGiveReasons) {
  auto known = calibration();
  follow(known, machine({0}));
  const auto metrics = tier_metrics(known);
  EXPECT_EQ(metrics[0].name, "tier_dram0_latency_p50_ns");
  EXPECT_EQ(metrics[0].value.value(), 90);
  const auto gone = std::find_if(metrics.begin(), metrics.end(), [](const auto& metric) {
    return metric.name == "tier_dram1_latency_p50_ns";
  });
  ASSERT_NE(gone, metrics.end());
  EXPECT_EQ(gone->value.error().message, "node 1 went offline");
}

// The whole of it: a fake machine, a real probe server, a clock that the test turns.
class RecalibrationTest : public testing::Test {
 protected:
  RecalibrationTest() {
    fs::copy(SOURCE_ROOT "/tests/sysroots/one_node", path_,
             fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    topology_ = look();
    calibration_.tiers = {tier("dram0", 0, 1e6, 0.9), tier("directory0", -1, 5e6)};
    calibration_.slow = 1;
    auto server = ProbeServer::start();
    if (!server) {
      ADD_FAILURE() << server.error().message;
      return;
    }
    recalibration_ = std::make_unique<Recalibration>(
        Recalibration::Options{
            .probe = {.timeout = std::chrono::seconds(30), .node_footprint_bytes = 8 << 20},
            .load = [this] { return load_; }},
        std::move(*server),
        TopologyWatcher({.sysroot = Sysroot(path_)}, topology_, clock_, std::nullopt, "a test"),
        topology_, calibration_, clock_);
  }

  Topology look() const {
    return discover_topology(Sysroot(path_), {.nvml_library = ""}).value_or(Topology{});
  }
  void write(const std::string& file, const std::string& text) {
    const fs::path path = path_ + "/sys/devices/system/node/" + file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  double metric(const std::string& name) const {
    for (const auto& value : recalibration_->metrics())
      if (value.name == name) return value.value.value_or(-1);
    return -2;
  }
  // Whether something was being measured, and then its answer was taken.
  bool take_answer(int timeout_ms = 30'000) {
    pollfd ready{.fd = recalibration_->probe_fd(), .events = POLLIN, .revents = 0};
    const double before = metric("tiers_measured_again");
    while (poll(&ready, 1, timeout_ms) == 1) {
      recalibration_->on_probe();
      if (metric("tiers_measured_again") > before) return true;
    }
    return false;
  }

  const ScratchDirectory scratch_;
  const std::string path_ = scratch_.path();
  ManualClock clock_;
  double load_ = 0;
  Topology topology_;
  Calibration calibration_;
  std::unique_ptr<Recalibration> recalibration_;
};

TEST_F(RecalibrationTest, MeasuresAgainAndReportsIt) {
  recalibration_->tick();
  EXPECT_FALSE(take_answer(200)) << "not due yet";
  clock_.advance_ns(61 * kSecond_ns);
  recalibration_->tick();
  recalibration_->tick();
  ASSERT_TRUE(take_answer());
  EXPECT_LT(*calibration_.tiers[0].latency_p50_ns.value, 1e6) << "the made-up figure is gone";
  EXPECT_EQ(*calibration_.tiers[1].latency_p50_ns.value, 5e6) << "directories are left alone";
  EXPECT_GT(metric("tiers_measured_again_cpu_s"), 0);
  EXPECT_EQ(metric("tiers_measured_ago_s"), 0);
}

TEST_F(RecalibrationTest, LeavesABusyMachineAlone) {
  load_ = 1;
  for (int minute = 0; minute < 60; ++minute) {
    clock_.advance_ns(60 * kSecond_ns);
    recalibration_->tick();
  }
  EXPECT_FALSE(take_answer(200));
  EXPECT_EQ(metric("tiers_measured_ago_s"), 3600);
}

TEST_F(RecalibrationTest, PluggedInMemoryIsATierWithoutARestart) {
  write("online", "0-1");
  write("node1/cpulist", "");
  write("node1/meminfo", "Node 1 MemTotal: 8388608 kB\nNode 1 MemFree: 1024 kB");
  write("node0/meminfo", "Node 0 MemTotal: 25165824 kB\nNode 0 MemFree: 1024 kB");
  clock_.advance_ns(6 * kSecond_ns);
  recalibration_->tick();
  ASSERT_EQ(calibration_.tiers.size(), 3U);
  EXPECT_EQ(calibration_.tiers[2].tier.name, "memory1");
  EXPECT_TRUE(topology_.node(1));
  EXPECT_TRUE(take_answer()) << "it is measured at once";
  fs::remove_all(path_ + "/sys/devices/system/node/node1");
  write("online", "0");
  clock_.advance_ns(6 * kSecond_ns);
  recalibration_->tick();
  EXPECT_EQ(calibration_.tiers.size(), 2U);
  EXPECT_FALSE(topology_.node(1));
}

}  // namespace
}  // namespace tierpilot::agent
