// Paging as a part of the node, with its thread.
#include "daemon/agent/paging/paging.h"

#include <gtest/gtest.h>

#include <thread>

#include "fake_machine.h"

namespace tierpilot::agent {
namespace {

struct PagingTest : testing::Test {
  PagingTest() {
    config.interval_ms = 50;
    config.scan_interval_ms = 100;
    config.cpu_share = 0;
    machine.add_process(500, 1, "supervisor", 3 * kMiB);
    machine.add_process(501, 500, "sort", 64 * kMiB);
    machine.pages.alive = 501;
    machine.pages.map(kFakeBase, kFakeBase + 64 * kMiB, 1);
    machine.heat.samples = {{kFakeBase, kFakeBase + 16 * kMiB, 50}};
  }

  static TierSet two_tiers() {
    return {.tiers = FakeMachine::two_tiers(), .latency_source = "measured"};
  }
  static TierSet one_tier() {
    return {.tiers = {FakeMachine::two_tiers()[0]}, .latency_source = "measured"};
  }
  std::unique_ptr<Paging> make(TierSet tiers) {
    auto environment = machine.environment();
    return std::make_unique<Paging>(config,
                                    PagingEnvironment{.sysroot = environment.sysroot,
                                                      .pacer = pacer,
                                                      .kernel = environment.kernel,
                                                      .make_trackers = environment.make_trackers},
                                    std::move(tiers));
  }
  static Result<double> metric(const Paging& placement, const std::string& name) {
    for (const auto& value : placement.metrics())
      if (value.name == name) return value.value;
    return fail(ErrorCode::kNotFound, name);
  }
  static bool eventually(const std::function<bool()>& condition) {
    for (int i = 0; i < 2'000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return condition();
  }

  FakeMachine machine;
  SystemPacer pacer;
  PagingConfig config;
};

TEST_F(PagingTest, OneTierIsOffAndSaysWhy) {
  const auto placement = make(one_tier());
  placement->task_started({.attempt = {1, 1}, .pid = 501, .name = "sort"});
  const auto feature = placement->feature();
  EXPECT_EQ(feature.subject, "placement");
  EXPECT_FALSE(feature.on);
  EXPECT_NE(feature.reason.find("one memory tier, node0"), std::string::npos) << feature.reason;
  const auto rounds = metric(*placement, "placement_rounds");
  ASSERT_FALSE(rounds);
  EXPECT_EQ(rounds.error().message, feature.reason);
  EXPECT_EQ(machine.heat.sources, 0);
}

TEST_F(PagingTest, ConfigurationTurnsItOff) {
  config.enabled = false;
  const auto placement = make(two_tiers());
  EXPECT_EQ(placement->feature().reason, "off in the configuration");
  EXPECT_EQ(placement->tiers().size(), 2u) << "tasks may wish for a tier all the same";
}

TEST_F(PagingTest, NamesTrackerTiersAndWhatTheKernelDoesBesides) {
  machine.write("/proc/sys/kernel/numa_balancing", "2\n");
  const auto placement = make(two_tiers());
  const auto feature = placement->feature();
  EXPECT_TRUE(feature.on);
  for (const char* part : {"node0 (100 ns)", "node1 (400 ns)", "measured",
                           "tracker damon by a fake way", "conflict: kernel.numa_balancing is 2"})
    EXPECT_NE(feature.reason.find(part), std::string::npos) << part << "\n" << feature.reason;
  EXPECT_EQ(metric(*placement, "placement_conflicts"), 1.0);
}

TEST_F(PagingTest, SaysWhyThereIsNoTracker) {
  machine.tracker = fail(ErrorCode::kDenied, "needs root");
  const auto placement = make(two_tiers());
  EXPECT_TRUE(placement->feature().on);
  EXPECT_NE(placement->feature().reason.find("static placement only"), std::string::npos);
  EXPECT_NE(placement->feature().reason.find("damon: needs root"), std::string::npos);
}

TEST_F(PagingTest, PlacesOnItsOwnThreadAndCounts) {
  const auto placement = make(two_tiers());
  placement->task_started({.attempt = {1, 1}, .pid = 501, .name = "sort"});
  ASSERT_TRUE(eventually(
      [&] { return metric(*placement, "placement_promoted_bytes").value() >= 16 * kMiB; }));
  EXPECT_EQ(metric(*placement, "placement_watched_processes"), 1.0);
  EXPECT_EQ(metric(*placement, "placement_tracker_damon"), 1.0);
  placement->task_ended({1, 1});
  ASSERT_TRUE(eventually([&] { return metric(*placement, "placement_watched_processes") == 0.0; }));
}

TEST_F(PagingTest, BeginsWhenASecondTierComesAndEndsWithWork) {
  auto placement = make(one_tier());
  placement->task_started({.attempt = {1, 1}, .pid = 501, .name = "sort"});
  placement->set_tiers(two_tiers());
  EXPECT_TRUE(placement->feature().on);
  ASSERT_TRUE(eventually([&] { return metric(*placement, "placement_watched_processes") == 1.0; }));
  placement->set_tiers(one_tier());
  EXPECT_FALSE(placement->feature().on);
  placement->set_tiers(two_tiers());
  placement.reset();
  EXPECT_EQ(machine.heat.sources, 0);
}

struct PagingTiersTest : testing::Test {
  PagingTiersTest() {
    for (const int id : {0, 1})
      topology.nodes.push_back({.id = id,
                                .cpus = id == 0 ? std::vector{0} : std::vector<int>{},
                                .memory_total_bytes = 1});
  }
  void measured(int node, double latency_ns, double spread, int rounds = 3) {
    TierMeasurement tier;
    tier.tier.numa_node = node;
    tier.latency_p50_ns.value = latency_ns;
    tier.evidence["latency_ns"] = {.spread = spread, .rounds = rounds};
    calibration.tiers.push_back(tier);
  }
  size_t tiers() const { return paging_tiers(topology, calibration).tiers.size(); }

  Topology topology;
  Calibration calibration;
};

TEST_F(PagingTiersTest, WhatDiffersByLessThanItsSpreadIsOneTier) {
  measured(0, 200, 0.05);
  measured(1, 250, 0.05);
  EXPECT_EQ(tiers(), 2u);
  calibration.tiers[1].evidence["latency_ns"].spread = 0.3;
  EXPECT_EQ(tiers(), 1u);
  calibration.tiers[1].evidence["latency_ns"] = {.spread = 0, .rounds = 1};
  EXPECT_EQ(tiers(), 1u) << "a single round";
  calibration.tiers[1].latency_p50_ns.value = 600;
  EXPECT_EQ(tiers(), 2u);
}

TEST_F(PagingTiersTest, AreRankedByWhatWasMeasured) {
  measured(0, 300, 0.01);
  measured(1, 100, 0.01);
  measured(-1, 50'000, 0.01);
  const auto set = paging_tiers(topology, calibration);
  ASSERT_EQ(set.tiers.size(), 2u);
  EXPECT_EQ(set.tiers[0].nodes, std::vector{1}) << "by what was measured";
  EXPECT_EQ(set.latency_source, "measured");
}

}  // namespace
}  // namespace tierpilot::agent
