#include "daemon/agent/metrics/metrics.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tierpilot::agent {
namespace {

const MetricValue& find(const std::vector<MetricValue>& values, const std::string& name) {
  return *std::find_if(values.begin(), values.end(),
                       [&](const MetricValue& value) { return value.name == name; });
}

TEST(Metrics, SubjectThatIsOffKeepsItsNamesAndSaysWhy) {
  const auto on = migration_metrics(MigrationStats{}, "");
  const auto off = migration_metrics(std::nullopt, "unavailable: lockdown");
  ASSERT_EQ(on.size(), off.size());
  for (size_t i = 0; i < on.size(); ++i) {
    EXPECT_EQ(on[i].name, off[i].name);
    ASSERT_FALSE(off[i].value);
    EXPECT_EQ(off[i].value.error().message, "unavailable: lockdown");
  }
}

TEST(Metrics, QuantilesOfNothingAreUnavailable) {
  ReclaimStats stats;
  EXPECT_FALSE(find(reclaim_metrics(stats, ""), "direct_reclaim_stall_p99_ns").value);
  EXPECT_EQ(find(reclaim_metrics(stats, ""), "direct_reclaim_stalls").value.value(), 0);
  stats.direct.duration_ns.add(1000);
  EXPECT_NEAR(find(reclaim_metrics(stats, ""), "direct_reclaim_stall_p99_ns").value.value(), 1000,
              100);
}

TEST(Metrics, MinorFaultsAreThoseThatAreNotMajor) {
  EXPECT_EQ(find(fault_metrics(FaultStats{.faults = 10, .major = 3}, ""), "minor_faults").value, 7);
}

TEST(Metrics, TurnsTellWhoWaitsNow) {
  const auto values = turn_metrics({.reading = 2, .waiting = 5, .turns = 9, .sent_elsewhere = 4});
  EXPECT_EQ(find(values, "data_readers").value, 2);
  EXPECT_EQ(find(values, "data_readers_waiting").value, 5);
  EXPECT_EQ(find(values, "data_turns").value, 9);
  EXPECT_EQ(find(values, "data_readers_sent_elsewhere").value, 4);
}

TEST(Metrics, ATasksWaitsAreSums) {
  GroupIo group;
  group.faults = FaultStats{.faults = 10, .major = 3};
  group.reclaim.emplace();
  group.reclaim->memcg.calls = 2;
  group.reclaim->memcg.duration_ns.add(3'000'000, 2);
  const auto values = task_memory_metrics(
      group, {{.subject = "numa_hint", .on = true, .reason = "by group: unavailable: lockdown"}});
  EXPECT_EQ(find(values, "page_faults").value.value(), 10);
  EXPECT_EQ(find(values, "memcg_reclaim_stalls").value.value(), 2);
  EXPECT_NEAR(find(values, "memcg_reclaim_stall_ms").value.value(), 6, 0.5);
  EXPECT_EQ(find(values, "direct_reclaim_stall_ms").value.value(), 0);
  EXPECT_NE(find(values, "numa_hint_faults").value.error().message.find("lockdown"),
            std::string::npos);
  EXPECT_FALSE(find(values, "compaction_stall_ms").value);
}

TEST(Metrics, ATasksMigrationsSayWhoseTheyAre) {
  GroupIo group;
  auto& seen = group.migration.emplace();
  seen.total.pages_moved = 12;
  MigrationCounts::Pair pair{.from_node = 0, .to_node = 1};
  pair.by_reason["MR_DEMOTION"].pages_moved = 12;
  seen.pairs = {pair};
  auto values = task_memory_metrics(group, {});
  EXPECT_EQ(find(values, "memory_migrated_pages").value, 12);
  EXPECT_EQ(find(values, "memory_node0_to_node1_demotion_pages").value, 12);
  EXPECT_FALSE(find(values, "memory_migrate_watched_pages_share").value);
  seen.watched_pages_share = 0.5;
  values = task_memory_metrics(group, {});
  EXPECT_EQ(find(values, "memory_migrate_watched_pages_share").value, 0.5);
  seen.by = OwnedMigrations::By::kCaller;
  values = task_memory_metrics(group, {});
  EXPECT_EQ(find(values, "caller_migrated_pages").value, 12);
  group.migration.reset();
  group.migration_unavailable = "unavailable: no fentry";
  values = task_memory_metrics(group, {});
  EXPECT_EQ(find(values, "memory_migrated_pages").value.error().message, "unavailable: no fentry");
}

TEST(Metrics, MigrationsTellWhatTheKernelCountedAndHowMuchOfItWasWatched) {
  MigrationStats stats{.machine = MigrationStats::Pages{.moved = 400, .failed = 3},
                       .watched_time_share = 0.25,
                       .watched_pages_share = 0.3};
  stats.total.pages_moved = 120;
  auto values = migration_metrics(stats, "");
  EXPECT_EQ(find(values, "migrated_pages").value, 400);
  EXPECT_EQ(find(values, "migrate_failed_pages").value, 3);
  EXPECT_EQ(find(values, "migrate_watched_pages_share").value, 0.3);
  EXPECT_EQ(find(values, "migrate_watched_time_share").value, 0.25);
  stats.machine.reset();
  stats.machine_unavailable = "unavailable: /proc/vmstat has no pgmigrate_success";
  values = migration_metrics(stats, "");
  EXPECT_EQ(find(values, "migrated_pages").value.error().message, stats.machine_unavailable);
}

TEST(Metrics, EachPairOfNodesHasItsFigures) {
  MigrationStats stats;
  MigrationStats::Pair pair{.from_node = 0, .to_node = 1, .live_gb_per_s = 2.5};
  pair.total.pages_moved = 12;
  stats.pairs = {pair, {.from_node = 1, .to_node = std::nullopt}};
  const auto values = migration_metrics(stats, "");
  EXPECT_EQ(find(values, "migrate_node_pairs").value, 2);
  EXPECT_EQ(find(values, "migrate_node0_to_node1_pages").value, 12);
  EXPECT_EQ(find(values, "migrate_node0_to_node1_gb_per_s").value, 2.5);
  EXPECT_FALSE(find(values, "migrate_node1_to_other_gb_per_s").value) << "none was timed";
}

TEST(Metrics, PairsThatAreNotToldApartHaveAReason) {
  MigrationStats stats;
  stats.pairs_unavailable = "unavailable: no fentry";
  EXPECT_EQ(find(migration_metrics(stats, ""), "migrate_node_pairs").value.error().message,
            "unavailable: no fentry");
}

TEST(Metrics, WhatTheKernelsTotalDoesNotTellIsUnavailable) {
  const auto values = numa_hint_metrics(NumaHintStats{.faults = 4, .source = "/proc/vmstat"}, "");
  EXPECT_EQ(find(values, "numa_hint_faults").value, 4);
  EXPECT_FALSE(find(values, "numa_hint_migrated_pages").value);
}

TEST(SelfCost, MeasuresThisProcess) {
  ManualClock clock;
  SelfCost cost(clock);
  EXPECT_FALSE(cost.cpu_share()) << "no time has passed";
  clock.advance_ns(1'000'000'000);
  EXPECT_GE(cost.cpu_share().value(), 0);
  EXPECT_GT(SelfCost::resident_bytes().value(), 100'000u);
}

}  // namespace
}  // namespace tierpilot::agent
