#include "daemon/probe/active/measure.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <fstream>

#include "daemon/probe/active/classes.h"
#include "daemon/probe/active/tier_probe.h"
#include "daemon/probe/memory/memory.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/probe/emulated_processor.h"
#include "tests/unit/probe/first_node.h"

namespace tierpilot {
namespace {

using namespace std::chrono_literals;

TierSpec directory_tier(const std::string& path) {
  return {.name = "directory0", .kind = "directory", .directory = path};
}

// Small enough for a loaded machine under a sanitizer.
ProbeOptions small() {
  return {.timeout = 60s,
          .node_footprint_bytes = 16 << 20,
          .directory_footprint_bytes = 8 << 20,
          .transfer_bytes = 4 << 20};
}

TierMeasurement measured(double latency_ns, double read_gb_per_s) {
  TierMeasurement tier;
  if (latency_ns > 0) tier.latency_p50_ns.value = latency_ns;
  if (read_gb_per_s > 0) tier.read_gb_per_s.value = read_gb_per_s;
  return tier;
}

int64_t resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmRSS:") {
      int64_t kib = 0;
      status >> kib;
      return kib;
    }
  return 0;
}

TEST(Footprint, IsOneForAllNodesAndOutgrowsTheCache) {
  const TierSpec large{.numa_node = 0, .capacity_bytes = 64ULL << 30};
  const TierSpec small{.numa_node = 1, .capacity_bytes = 512 << 20};
  const TierSpec directory{.numa_node = -1, .directory = "/srv", .capacity_bytes = 1 << 20};
  const auto alone = node_footprint_bytes({large, directory});
  EXPECT_EQ(alone, node_footprint_bytes({large}));
  EXPECT_GE(alone, 64u << 20);
  EXPECT_LE(alone, 256u << 20);
  const auto both = node_footprint_bytes({large, small});
  EXPECT_EQ(both, node_footprint_bytes({small}));
  EXPECT_LE(both, alone);
  EXPECT_LE(both, small.capacity_bytes / 4);
  EXPECT_GE(both, std::min(2 * last_level_cache_bytes(), small.capacity_bytes / 4));
}

TEST(Footprint, LeavesHalfOfTheMemoryThatCanBeHadOrOutgrowsTheCacheAtLeast) {
  const TierSpec node0{.numa_node = 0, .capacity_bytes = 64ULL << 30};
  const TierSpec node1{.numa_node = 1, .capacity_bytes = 64ULL << 30};
  const auto least = 2 * last_level_cache_bytes();
  EXPECT_EQ(node_footprint_bytes({node0, node1}, 64ULL << 30), node_footprint_bytes({node0}));
  EXPECT_EQ(node_footprint_bytes({node0}, 1 << 20), std::min(least, node_footprint_bytes({node0})));
  const uint64_t available = 3 * (node_footprint_bytes({node0}) - (1 << 20));
  EXPECT_LE(node_footprint_bytes({node0, node1}, available),
            std::max(least, node_footprint_bytes({node0}, available)));
}

TEST(RankTiers, FastToSlowByLatencyThenBandwidthUnmeasuredLast) {
  EXPECT_EQ(rank_tiers({measured(0, 0), measured(300, 10), measured(90, 20), measured(300, 30)}),
            (std::vector<size_t>{2, 3, 1, 0}));
}

TEST(RankTiers, NoiseDoesNotDecide) {
  EXPECT_EQ(rank_tiers({measured(100, 20), measured(97, 22), measured(250, 9)}),
            (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(rank_tiers({measured(100, 20), measured(105, 90)}), (std::vector<size_t>{1, 0}))
      << "wider memory at much the same distance is faster";
}

TEST(MeasureTiers, ANodeAndADirectory) {
  const ScratchDirectory scratch;
  const auto result = measure_tiers({directory_tier(scratch.path()), kNode0}, small());
  ASSERT_TRUE(result) << result.error().message;
  ASSERT_EQ(result->size(), 2U);
  for (const auto& tier : *result) {
    ASSERT_TRUE(tier.latency_p50_ns.value) << tier.latency_p50_ns.unavailable;
    EXPECT_GT(*tier.latency_p50_ns.value, 0);
    EXPECT_GE(*tier.latency_p99_ns.value, *tier.latency_p50_ns.value);
    EXPECT_GT(tier.latency_ns.count(), 0U);
    EXPECT_GT(tier.read_gb_per_s.value.value_or(0), 0) << tier.read_gb_per_s.unavailable;
    EXPECT_GT(tier.write_gb_per_s.value.value_or(0), 0) << tier.write_gb_per_s.unavailable;
    EXPECT_EQ(tier.rounds, 3);
    EXPECT_GT(tier.cost_s, 0);
    EXPECT_FALSE(tier.method.empty());
  }
  EXPECT_GT(result->front().evict_gb_per_s.value.value_or(0), 0)
      << result->front().evict_gb_per_s.unavailable;
  EXPECT_GT(result->front().promote_gb_per_s.value.value_or(0), 0);
  EXPECT_EQ(result->back().evict_gb_per_s.unavailable, "no slower tier");
  EXPECT_TRUE(scratch.empty());
}

TEST(MeasureTiers, ColdStorageIsSlowerThanMemory) {
  const ScratchDirectory scratch;
  if (directory_access(scratch.path()) != DirectoryAccess::kPaged)
    GTEST_SKIP() << scratch.path() << " is not on storage behind a page cache";
  auto options = small();
  options.bandwidth = options.eviction = false;
  const auto result = measure_tiers({directory_tier(scratch.path()), kNode0}, options);
  ASSERT_TRUE(result);
  const auto& fast = result->front();
  const auto& slow = result->back();
  EXPECT_EQ(fast.tier.name, "dram0") << "ranked by what was measured, not by order";
  EXPECT_GT(*slow.latency_p50_ns.value, 5 * *fast.latency_p50_ns.value);
  EXPECT_LT(slow.cached_latency_p50_ns.value.value_or(1e9), *slow.latency_p50_ns.value / 2);
  EXPECT_EQ(slow.read_gb_per_s.unavailable, "not asked for");
}

TEST(MeasureTiers, OneTierHasNoneToEvictTo) {
  const auto result = measure_tiers({kNode0}, small());
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->front().latency_p50_ns.value);
  EXPECT_EQ(result->front().evict_gb_per_s.unavailable, "no slower tier");
  EXPECT_EQ(result->front().promote_gb_per_s.unavailable, "no slower tier");
}

TEST(MeasureTiers, ATierThatCannotBeMeasuredSaysWhyAndTheOthersGoOn) {
  const auto result = measure_tiers({directory_tier("/nonexistent/tier"), kNode0}, small());
  ASSERT_TRUE(result);
  EXPECT_EQ(result->front().tier.name, "dram0");
  EXPECT_TRUE(result->front().latency_p50_ns.value);
  const auto& broken = result->back();
  for (const auto* figure :
       {&broken.latency_p50_ns, &broken.read_gb_per_s, &broken.write_gb_per_s}) {
    EXPECT_FALSE(figure->value);
    EXPECT_NE(figure->unavailable.find("/nonexistent/tier"), std::string::npos);
  }
  EXPECT_NE(result->front().evict_gb_per_s.unavailable.find("/nonexistent/tier"),
            std::string::npos);
}

TEST(MeasureTiers, ATimeoutIsAReasonNotAHang) {
  auto options = small();
  options.timeout = 1ms;
  options.rounds = 100;
  const auto start = std::chrono::steady_clock::now();
  const auto result = measure_tiers({kNode0, directory_tier(testing::TempDir())}, options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->front().read_gb_per_s.value);
  EXPECT_NE(result->front().read_gb_per_s.unavailable.find("stopped after"), std::string::npos)
      << result->front().read_gb_per_s.unavailable;
}

TEST(MeasureTiers, LeavesNoMemoryAndNoChildBehind) {
  const ScratchDirectory scratch;
  const auto before = resident_kib();
  auto options = small();
  options.node_footprint_bytes = 64 << 20;
  ASSERT_TRUE(measure_tiers({kNode0, directory_tier(scratch.path())}, options));
  EXPECT_LT(resident_kib() - before, 8 << 10);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "no child is left";
}

TEST(MeasureTiers, RefusesWhatMakesNoSense) {
  EXPECT_EQ(measure_tiers({}, {}).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(measure_tiers({kNode0}, {.rounds = 0}).error().code, ErrorCode::kInvalid);
}

TEST(MeasureOperations, RatesArePlausible) {
  const auto rates = measure_operations();
  EXPECT_GT(rates.float32_ops_per_s, 1e7);
  EXPECT_GT(rates.int32_ops_per_s, 1e7);
  EXPECT_FALSE(rates.method.empty());
  if (processor_is_emulated()) {
    EXPECT_LT(rates.float32_ops_per_int32_op(), 1) << "floats in software, integers in vectors";
    return;
  }
  EXPECT_GT(rates.float32_ops_per_int32_op(), 0.05);
  EXPECT_LT(rates.float32_ops_per_int32_op(), 50);
}

}  // namespace
}  // namespace tierpilot
