// The tiers that pages are placed on: how they are ranked, and how they answer under load.
#include "daemon/memory/loop/tiers.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "daemon/memory/loop/loaded_latency.h"

namespace tierpilot {
namespace {

TEST(LoadedLatency, IsMeasuredWhereThereIsMemoryAndExplainedWhereNot) {
  std::vector<PagingTier> tiers{{.name = "here", .nodes = {0}}, {.name = "nowhere", .nodes = {60}}};
  LoadedLatencyProbe probe(tiers, {.footprint_bytes = kMiB});
  for (int i = 0; i < 3; ++i) probe.refresh(tiers);
  EXPECT_FALSE(tiers[1].loaded_latency_ns);
  EXPECT_FALSE(tiers[1].loaded_latency_unavailable.empty());
  if (!tiers[0].loaded_latency_ns) GTEST_SKIP() << tiers[0].loaded_latency_unavailable;
  EXPECT_GT(*tiers[0].loaded_latency_ns, 0.1);
}

TEST(PagingTiers, EachSocketsMemoryIsNearToIt) {
  Topology topology;
  topology.nodes = {{.id = 0, .cpus = {0}, .memory_total_bytes = kMiB},
                    {.id = 1, .cpus = {1}, .memory_total_bytes = kMiB},
                    {.id = 2, .cpus = {}, .memory_total_bytes = kMiB}};
  const auto set = make_paging_tiers(topology, {{0, 90}, {1, 160}, {2, 300}});
  ASSERT_EQ(set.tiers.size(), 2U);
  EXPECT_EQ(set.tiers[0].nodes, (std::vector{0, 1}));
  EXPECT_EQ(set.tiers[0].latency_ns, 90);
  EXPECT_EQ(set.tiers[1].nodes, std::vector{2});
}

TEST(PagingTiers, RankByWhatIsKnownOfLatency) {
  Topology topology;
  topology.nodes = {
      {.id = 0, .cpus = {0}, .memory_total_bytes = kMiB, .distance_to = {{0, 10}, {2, 20}}},
      {.id = 2, .cpus = {}, .memory_total_bytes = 4 * kMiB, .distance_to = {{0, 20}, {2, 10}}},
      {.id = 5, .cpus = {1}, .memory_total_bytes = 0}};
  auto set = make_paging_tiers(topology);
  EXPECT_EQ(set.latency_source, "SLIT distances");
  ASSERT_EQ(set.tiers.size(), 2U);
  EXPECT_EQ(set.tiers[0].nodes, std::vector{0});
  EXPECT_EQ(set.tiers[1].name, "node2");
  set = make_paging_tiers(topology, {{0, 300}, {2, 90}});
  EXPECT_EQ(set.latency_source, "measured");
  EXPECT_EQ(set.tiers[0].nodes, std::vector{2});
  set = make_paging_tiers(topology, {{0, 100}, {2, 105}});
  ASSERT_EQ(set.tiers.size(), 1U) << "as good as the same";
  EXPECT_EQ(set.tiers[0].capacity_bytes, 5 * kMiB);
}

}  // namespace
}  // namespace tierpilot
