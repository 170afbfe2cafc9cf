#include "daemon/agent/calibration/calibration.h"

#include <gtest/gtest.h>

namespace tierpilot::agent {
namespace {

TierMeasurement tier(std::string name, int node, double latency_ns, double read_gb_per_s) {
  TierMeasurement made;
  made.tier.name = std::move(name);
  made.tier.numa_node = node;
  if (node < 0) made.tier.directory = "/slow";
  made.latency_p50_ns.value = latency_ns;
  made.read_gb_per_s.value = read_gb_per_s;
  made.evict_gb_per_s.value = 1.5;
  return made;
}

NodeConfig::Pool pool() {
  NodeConfig::Pool made;
  made.fast_dir = "/fast";
  made.slow_dir = "/slow";
  made.slow_node_dir = "/fast-slow";
  made.slow_kind = "auto";
  return made;
}

TEST(ChooseTiers, OneNodeUsesTheDirectory) {
  auto chosen = choose_tiers(pool(), {tier("dram0", 0, 90, 10), tier("directory0", -1, 50'000, 1)});
  ASSERT_TRUE(chosen) << chosen.error().message;
  EXPECT_EQ(chosen->slow_tier().tier.name, "directory0");
  EXPECT_EQ(chosen->evict_gb_per_s().value(), 1.5);
  EXPECT_NE(chosen->choice.find("1 NUMA node "), std::string::npos);
  const auto options = pool_options(pool(), *chosen);
  EXPECT_EQ(options.slow_kind, "directory");
  EXPECT_EQ(options.slow_dir, "/slow");
  EXPECT_EQ(options.fast_numa_node, -1);
}

TEST(ChooseTiers, MoreNodesAreRankedByMeasurement) {
  auto chosen = choose_tiers(
      pool(), {tier("dram1", 1, 80, 12), tier("cxl2", 2, 250, 8), tier("dram0", 0, 300, 5)});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->fast_tier().tier.name, "dram1");
  EXPECT_EQ(chosen->slow_tier().tier.name, "cxl2");
  const auto options = pool_options(pool(), *chosen);
  EXPECT_EQ(options.slow_kind, "numa");
  EXPECT_EQ(options.slow_dir, "/fast-slow");
  EXPECT_EQ(options.fast_numa_node, 1);
  EXPECT_EQ(options.slow_numa_node, 2);
}

TEST(ChooseTiers, TheConfigurationMaySayOtherwise) {
  const std::vector<TierMeasurement> tiers{tier("dram0", 0, 80, 12), tier("dram1", 1, 90, 11),
                                           tier("directory0", -1, 50'000, 1)};
  auto config = pool();
  config.fast_node = 1;
  EXPECT_EQ(choose_tiers(config, tiers)->slow_tier().tier.name, "dram0");
  config.slow_kind = "directory";
  config.fast_node = 0;
  auto chosen = choose_tiers(config, tiers);
  EXPECT_EQ(chosen->slow_tier().tier.name, "directory0");
  EXPECT_FALSE(chosen->evict_gb_per_s()) << "dram0 was measured against dram1";
}

TEST(ChooseTiers, NamesWhatIsNotThere) {
  auto config = pool();
  config.fast_node = 5;
  auto chosen = choose_tiers(config, {tier("dram0", 0, 80, 12)});
  ASSERT_FALSE(chosen);
  EXPECT_NE(chosen.error().message.find("pool.fast_node: NUMA node 5"), std::string::npos);
  config = pool();
  config.slow_kind = "node";
  EXPECT_FALSE(choose_tiers(config, {tier("dram0", 0, 80, 12)}));
}

TEST(ServiceTime, LatencyPlusTransfer) {
  EXPECT_EQ(service_time_ns(tier("dram0", 0, 100, 10), 1000), 200u);
  TierMeasurement unknown;
  EXPECT_EQ(service_time_ns(unknown, 1000), 0u) << "not measured";
}

}  // namespace
}  // namespace tierpilot::agent
