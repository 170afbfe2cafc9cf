#include "daemon/probe/passive/decode.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "bpf/hist.h"
#include "bpf/pairs.h"
#include "daemon/probe/passive/live_bandwidth.h"
#include "daemon/probe/passive/maps.h"

namespace tierpilot {
namespace {

TEST(PassiveHistogram, EveryBucketBeginsAtItsFloor) {
  for (uint32_t bucket = 0; bucket < TP_HIST_BUCKETS; ++bucket) {
    const uint64_t floor = tp_hist_floor(bucket);
    EXPECT_EQ(tp_hist_bucket(floor), bucket);
    if (bucket > 0) {
      EXPECT_EQ(tp_hist_bucket(floor - 1), bucket - 1);
    }
  }
}

TEST(PassiveHistogram, HugeValuesFallIntoTheLastBucket) {
  EXPECT_EQ(tp_hist_bucket(uint64_t{1} << TP_HIST_MAX_BITS), TP_HIST_BUCKETS - 1u);
  EXPECT_EQ(tp_hist_bucket(UINT64_MAX), TP_HIST_BUCKETS - 1u);
}

TEST(PassiveHistogram, QuantilesAreWithinAnEighth) {
  tp_hist hist{};
  for (uint64_t value = 1'000; value <= 100'000; value += 10) ++hist.buckets[tp_hist_bucket(value)];
  const Histogram decoded = decode_histogram(hist);
  EXPECT_EQ(decoded.count(), 9'901u);
  EXPECT_NEAR(decoded.quantile(0.5), 50'500, 50'500 / 8.0);
  EXPECT_NEAR(decoded.quantile(0.99), 99'010, 99'010 / 8.0);
}

TEST(PassiveDecode, CpusAreSummed) {
  std::vector<tp_fault_stats> slots{{.faults = 3, .major = 1}, {.faults = 4, .major = 0}};
  const auto total = sum_cpus(slots);
  EXPECT_EQ(total.faults, 7u);
  EXPECT_EQ(total.major, 1u);
  EXPECT_EQ(sum_cpus(std::vector<tp_fault_stats>{}).faults, 0u);
}

TEST(PassiveDecode, MigrationCountsByTheKernelsOwnNames) {
  std::vector<tp_migrate_counts> table(tp_pair_count(2));
  table[tp_pair_index(2, 0, 1, 8)] = {
      .calls = 2, .pages_moved = 10, .pages_failed = 1, .timed_pages = 10, .busy_ns = 500};
  table[tp_pair_index(2, TP_NO_NODE, 1, 99)] = {
      .calls = 1, .pages_moved = 2, .pages_failed = 0, .timed_pages = 0, .busy_ns = 0};
  const auto result = decode_migration({}, decode_pairs(table, 2, {{8, "MR_DEMOTION"}}));
  EXPECT_EQ(result.total.calls, 3u);
  EXPECT_EQ(result.total.pages_moved, 12u);
  EXPECT_EQ(result.by_reason.at("MR_DEMOTION").busy_ns, 500u);
  EXPECT_EQ(result.by_reason.at("#15").pages_moved, 2u);
  ASSERT_EQ(result.pairs.size(), 2u);
  EXPECT_FALSE(result.pairs[0].from_node);
  EXPECT_EQ(result.pairs[0].to_node, 1);
  EXPECT_EQ(result.pairs[1].from_node, 0);
  EXPECT_EQ(result.pairs[1].by_reason.at("MR_DEMOTION").pages_failed, 1u);
  EXPECT_FALSE(result.live_gb_per_s) << "no bandwidth before it was measured";
}

TEST(PassiveDecode, EachPairAndReasonHasACounter) {
  std::set<uint32_t> seen;
  for (int from = TP_NO_NODE; from < 3; ++from)
    for (int to = TP_NO_NODE; to < 3; ++to)
      for (uint32_t reason = 0; reason < TP_MIGRATE_REASONS; ++reason)
        seen.insert(tp_pair_index(3, from, to, reason));
  EXPECT_EQ(seen.size(), tp_pair_count(3));
  EXPECT_EQ(*seen.rbegin(), tp_pair_count(3) - 1);
}

TEST(PassiveDecode, BlockIoKeepsOperationsApart) {
  tp_io_stats stats{};
  stats.ops[TP_IO_READ] = {.requests = 1, .bytes = 4096, .errors = 0};
  stats.ops[TP_IO_WRITE] = {.requests = 2, .bytes = 8192, .errors = 1};
  stats.ops[TP_IO_OTHER] = {.requests = 3, .bytes = 0, .errors = 0};
  const auto result = decode_block_io(stats);
  EXPECT_EQ(result.read.bytes, 4096u);
  EXPECT_EQ(result.write.errors, 1u);
  EXPECT_EQ(result.other.requests, 3u);
}

TEST(PassiveDecode, EventWithoutDurationSaysSo) {
  tp_event event{};
  event.kind = TP_EVENT_MIGRATION;
  event.detail = 8;
  event.pages = 600;
  event.nodes = {.from = 1, .to = TP_NO_NODE};
  const auto decoded = decode_event(&event, sizeof event, {{8, "MR_DEMOTION"}});
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->detail, "MR_DEMOTION");
  EXPECT_EQ(decoded->pages, 600u);
  EXPECT_FALSE(decoded->duration_ns);
  EXPECT_EQ(decoded->from_node, 1);
  EXPECT_FALSE(decoded->to_node) << "a policy chose it";
}

TEST(PassiveDecode, HintFaultsKeepNodesApart) {
  tp_numa_hint_stats stats{.faults = 3, .pages = 4, .migrated_pages = 1};
  stats.pages_by_node[0] = 1;
  stats.pages_by_node[5] = 3;
  const auto result = decode_numa_hint(stats);
  EXPECT_EQ(result.faults, 3u);
  EXPECT_EQ(result.migrated_pages, 1u);
  EXPECT_EQ(result.pages_by_node, (std::map<int, uint64_t>{{0, 1}, {5, 3}}));
}

TEST(PassiveDecode, LiveBandwidthIsThatOfTheLatestWork) {
  LiveBandwidth bandwidth;
  EXPECT_FALSE(bandwidth.update(0, 0));
  EXPECT_EQ(bandwidth.update(4000, 1000), 4.0);
  EXPECT_EQ(bandwidth.update(4000, 1000), 4.0) << "nothing moved since";
  EXPECT_EQ(bandwidth.update(4000, 1500), 4.0) << "only failures since";
  EXPECT_EQ(bandwidth.update(5000, 2500), 1.0);
}

TEST(PassiveDecode, ForeignEventsAreRefused) {
  tp_event event{};
  EXPECT_FALSE(decode_event(&event, sizeof event - 1, {}));
  event.kind = 77;
  EXPECT_FALSE(decode_event(&event, sizeof event, {}));
  event.kind = TP_EVENT_RECLAIM;
  event.detail = TP_RECLAIM_KINDS;
  EXPECT_FALSE(decode_event(&event, sizeof event, {}));
}

TEST(PassiveDecode, CommandMayFillItsField) {
  tp_event event{};
  event.kind = TP_EVENT_RECLAIM;
  event.detail = TP_RECLAIM_MEMCG;
  std::memset(event.comm, 'x', sizeof event.comm);
  const auto decoded = decode_event(&event, sizeof event, {});
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->command, std::string(sizeof event.comm, 'x'));
  EXPECT_EQ(decoded->detail, "memcg");
}

}  // namespace
}  // namespace tierpilot
