#include "daemon/agent/metrics.h"

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

TEST(Metrics, MinorFaultsNeedMajorOnes) {
  FaultStats stats;
  stats.faults = 10;
  stats.source = "page_fault_user";
  EXPECT_FALSE(find(fault_metrics(stats, ""), "minor_faults").value);
  stats.major = 3;
  EXPECT_EQ(find(fault_metrics(stats, ""), "minor_faults").value.value(), 7);
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
