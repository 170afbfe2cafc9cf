#include "daemon/probe/loops/chase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tierpilot {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

std::byte* bytes_of(std::vector<Line>& lines) {
  return lines.data()->bytes;
}

double mean_hop_ns(size_t bytes) {
  std::vector<Line> lines(bytes / sizeof(Line));
  Chase chase(bytes_of(lines), bytes, sizeof(Line), 1);
  chase.run({});  // the caches take what they can
  double best = 1e9;
  for (int round = 0; round < 5; ++round) best = std::min(best, chase.run({}).mean_ns);
  return best;
}

TEST(Chase, IsOneCycleThroughEverySlot) {
  for (const size_t slots : {1, 2, 3, 64, 1000}) {
    std::vector<Line> lines(slots);
    Chase chase(bytes_of(lines), slots * sizeof(Line), sizeof(Line), 7);
    std::set<const void*> seen;
    const std::byte* at = bytes_of(lines);
    for (size_t i = 0; i < slots; ++i) {
      EXPECT_TRUE(seen.insert(at).second) << "slot met twice of " << slots;
      at = *reinterpret_cast<const std::byte* const*>(at);
    }
    EXPECT_EQ(at, bytes_of(lines)) << "closes after " << slots;
  }
}

TEST(Chase, CountsEveryBatch) {
  std::vector<Line> lines(100);
  Chase chase(bytes_of(lines), 6400, 64, 1);
  const auto result = chase.run({.hops_per_batch = 10, .max_batches = 50});
  uint64_t batches = 0;
  for (const auto& [ns, count] : result.counts) batches += count;
  EXPECT_EQ(batches, 50U);
  EXPECT_GT(result.mean_ns, 0);
}

TEST(Chase, EndsWhenItsTimeIsUpButRunsABatch) {
  std::vector<Line> lines(100);
  Chase chase(bytes_of(lines), 6400, 64, 1);
  const auto result =
      chase.run({.max_batches = 1'000'000, .max_time = std::chrono::milliseconds(0)});
  EXPECT_EQ(result.counts.size(), 1U);
}

TEST(Chase, MemoryBeyondTheNearCachesIsFarther) {
  EXPECT_GT(mean_hop_ns(32 << 20), 2 * mean_hop_ns(16 << 10));
}

}  // namespace
}  // namespace tierpilot
