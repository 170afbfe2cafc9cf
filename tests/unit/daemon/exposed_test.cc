// The node's figures under the names that Prometheus' conventions ask for.
#include "daemon/agent/metrics/exposed.h"

#include <gtest/gtest.h>

namespace tierpilot::agent {
namespace {

using Labels = Exposition::Labels;

void expect_name(const std::string& figure, const std::string& name, double scale, bool counter,
                 const Labels& labels = {}) {
  const auto exposed = exposed_name(figure);
  EXPECT_EQ(exposed.name, name) << figure;
  EXPECT_DOUBLE_EQ(exposed.scale, scale) << figure;
  EXPECT_EQ(exposed.counter, counter) << figure;
  EXPECT_EQ(exposed.labels, labels) << figure;
}

TEST(Exposed, CountersEndInTotalAndUnitsAreBaseUnits) {
  expect_name("pool_hits", "tierpilot_pool_hits_total", 1, true);
  expect_name("pool_hit_bytes", "tierpilot_pool_hit_bytes_total", 1, true);
  expect_name("placement_cpu_s", "tierpilot_placement_cpu_seconds_total", 1, true);
  expect_name("tiers_measured_again_cpu_s", "tierpilot_tiers_measured_again_cpu_seconds_total", 1,
              true);
  expect_name("migrate_failed_pages", "tierpilot_migrate_failed_pages_total", 1, true);
}

TEST(Exposed, WhatGoesUpAndDownIsAGauge) {
  expect_name("pool_evict_gb_per_s", "tierpilot_pool_evict_bytes_per_second", 1e9, false);
  expect_name("block_latency_p99_ns", "tierpilot_block_latency_p99_seconds", 1e-9, false);
  expect_name("migrate_watched_time_share", "tierpilot_migrate_watched_time_ratio", 1, false);
  expect_name("tiers_measured_ago_s", "tierpilot_tiers_measured_ago_seconds", 1, false);
  expect_name("pool_replicas", "tierpilot_pool_replicas", 1, false);
  for (const char* figure : {"swap_room_bytes", "swap_room_given_bytes", "placement_advised_bytes"})
    expect_name(figure, std::string("tierpilot_") + figure, 1, false);
  expect_name("placement_unwatched_processes", "tierpilot_placement_unwatched_processes", 1, false);
}

TEST(Exposed, WhatVariesInANameBecomesALabel) {
  expect_name("migrate_node0_to_node12_pages", "tierpilot_migrate_pair_pages_total", 1, true,
              {{"from", "node0"}, {"to", "node12"}});
  expect_name("migrate_node0_to_other_busy_ns", "tierpilot_migrate_pair_busy_seconds_total", 1e-9,
              true, {{"from", "node0"}, {"to", "other"}});
  expect_name("migrate_numa_misplaced_pages", "tierpilot_migrate_reason_pages_total", 1, true,
              {{"reason", "numa_misplaced"}});
  expect_name("numa_hint_node3_pages", "tierpilot_numa_hint_node_pages_total", 1, true,
              {{"numa_node", "3"}});
  expect_name("fault_node1_p99_ns", "tierpilot_fault_node_p99_seconds", 1e-9, false,
              {{"numa_node", "1"}});
  expect_name("placement_tracker_damon", "tierpilot_placement_tracker_is", 1, false,
              {{"tracker", "damon"}});
  for (const char* kind : {"numa-hint", "soft-dirty", "fault-address"})
    expect_name(std::string("placement_tracker_") + kind, "tierpilot_placement_tracker_is", 1,
                false, {{"tracker", kind}});
  expect_name("migrate_#5_pages", "tierpilot_migrate_reason_pages_total", 1, true,
              {{"reason", "#5"}});
  expect_name("placement_tracker_cpu_s", "tierpilot_placement_tracker_cpu_seconds_total", 1, true);
}

TEST(Exposed, GpusAreLabelledAndWhatADriverDoesNotTellHasNoSeries) {
  Exposition page;
  expose_gpus(page, {{"GPU-1", 61, 3ull << 30, 40}, {"GPU-2", {}, 1ull << 30, {}}});
  const auto text = page.text();
  for (const char* line : {"tierpilot_gpu_temperature_celsius{gpu=\"GPU-1\"} 61\n",
                           "tierpilot_gpu_memory_used_bytes{gpu=\"GPU-2\"} 1073741824\n",
                           "tierpilot_gpu_busy_ratio{gpu=\"GPU-1\"} 0.4\n"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
  EXPECT_EQ(text.find("celsius{gpu=\"GPU-2\"}"), std::string::npos) << text;
}

TEST(Exposed, WhatIsUnavailableHasNoSeries) {
  Exposition page;
  expose(page, {{"pool_hits", 3.0}, {"bogus", fail(ErrorCode::kUnavailable, "off")}});
  EXPECT_NE(page.text().find("tierpilot_pool_hits_total 3\n"), std::string::npos) << page.text();
  EXPECT_EQ(page.text().find("bogus"), std::string::npos) << page.text();
}

TEST(Exposed, TiersHaveLatenciesAndBandwidths) {
  Calibration calibration;
  auto& tier = calibration.tiers.emplace_back();
  tier.tier.name = "dram0";
  tier.tier.kind = "dram";
  tier.latency_ns.add(100, 5);
  tier.read_gb_per_s = {.value = 20.0};
  tier.write_gb_per_s = {.unavailable = "not measured"};
  Exposition page;
  expose_tiers(page, calibration);
  const auto text = page.text();
  EXPECT_NE(text.find("tierpilot_tier_latency_seconds_count{tier=\"dram0\",kind=\"dram\"} 5\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("tierpilot_tier_read_bytes_per_second{tier=\"dram0\",kind=\"dram\"} 2"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("write"), std::string::npos) << text;
}

}  // namespace
}  // namespace tierpilot::agent
