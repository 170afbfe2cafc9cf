#include "daemon/memory/heat/heat_map.h"
#include "base/bytes.h"

#include <gtest/gtest.h>

#include <random>

namespace tierpilot {
namespace {

constexpr uint64_t kBase = 0x7f00'0000'0000;

float heat_at(const HeatMap& map, uint64_t address) {
  for (const auto& region : map.regions())
    if (region.start <= address && address < region.end) return region.heat;
  return -1;
}

// Sorted, disjoint, on page boundaries, and within what was tracked.
void expect_sound(const HeatMap& map) {
  uint64_t bytes = 0, last = 0;
  for (const auto& region : map.regions()) {
    EXPECT_LE(last, region.start);
    EXPECT_LT(region.start, region.end);
    EXPECT_EQ(region.start % region.page_bytes(), 0U);
    EXPECT_EQ(region.end % region.page_bytes(), 0U);
    EXPECT_GE(region.heat, 0);
    bytes += region.bytes();
    last = region.end;
  }
  EXPECT_EQ(bytes, map.tracked_bytes());
  EXPECT_LE(static_cast<double>(map.memory_bytes()),
            0.003 * static_cast<double>(map.tracked_bytes()));
}

std::vector<TrackedRange> one_range(uint64_t bytes, uint32_t page = kBasePageBytes) {
  return {{kBase, kBase + bytes, page}};
}

TEST(HeatMap, BeginsUnknownAndLearnsFromTheFirstLook) {
  HeatMap map;
  map.track(one_range(64 * kMiB));
  ASSERT_EQ(map.regions().size(), 1U);
  EXPECT_EQ(map.regions()[0].updates, 0);
  map.update(std::vector<AccessSample>{{kBase + kMiB, kBase + 2 * kMiB, 100}}, 1);
  ASSERT_EQ(map.regions().size(), 3U);
  EXPECT_FLOAT_EQ(heat_at(map, kBase + kMiB), 100);
  EXPECT_FLOAT_EQ(heat_at(map, kBase), 0);
  EXPECT_EQ(map.regions()[1].updates, 1);
  expect_sound(map);
}

TEST(HeatMap, HeatHalvesInItsHalfLife) {
  HeatMap map({.half_life_s = 4});
  map.track(one_range(16 * kMiB));
  map.update(std::vector<AccessSample>{{kBase, kBase + 16 * kMiB, 80}}, 1);
  map.update({}, 4);
  EXPECT_NEAR(heat_at(map, kBase), 40, 0.01);
  for (int i = 0; i < 4; ++i) map.update({}, 1);
  EXPECT_NEAR(heat_at(map, kBase), 20, 0.01);
}

TEST(HeatMap, AlikeNeighboursMergeAgain) {
  HeatMap map({.half_life_s = 1});
  map.track(one_range(64 * kMiB));
  map.update(std::vector<AccessSample>{{kBase + kMiB, kBase + 2 * kMiB, 5}}, 1);
  EXPECT_EQ(map.regions().size(), 3U);
  for (int i = 0; i < 10; ++i)
    map.update(std::vector<AccessSample>{{kBase, kBase + 64 * kMiB, 5}}, 1);
  EXPECT_EQ(map.regions().size(), 1U);
  EXPECT_NEAR(heat_at(map, kBase), 5, 0.1);
}

TEST(HeatMap, WidensToWholePages) {
  HeatMap map;
  map.track(one_range(32 * kMiB, kHugePageBytes));
  map.update(
      std::vector<AccessSample>{{kBase + 4096, kBase + 8192, 3},
                                {kBase + 12288, kBase + 16384, 9},
                                {kBase + kHugePageBytes - 4096, kBase + 3 * kHugePageBytes, 4}},
      1);
  expect_sound(map);
  EXPECT_FLOAT_EQ(heat_at(map, kBase), 9);  // the highest within the page
  EXPECT_FLOAT_EQ(heat_at(map, kBase + kHugePageBytes), 4);
  EXPECT_FLOAT_EQ(heat_at(map, kBase + 3 * kHugePageBytes), 0);
}

TEST(HeatMap, KeepsTheHeatOfWhatStays) {
  HeatMap map;
  map.track(one_range(64 * kMiB));
  map.update(std::vector<AccessSample>{{kBase + 32 * kMiB, kBase + 64 * kMiB, 7}}, 1);
  const std::vector<TrackedRange> grown_and_cut{{kBase - 16 * kMiB, kBase + 48 * kMiB},
                                                {kBase + 128 * kMiB, kBase + 144 * kMiB}};
  map.track(grown_and_cut);
  expect_sound(map);
  EXPECT_FLOAT_EQ(heat_at(map, kBase + 40 * kMiB), 7);
  EXPECT_FLOAT_EQ(heat_at(map, kBase), 0);
  EXPECT_EQ(heat_at(map, kBase + 50 * kMiB), -1);
  EXPECT_EQ(map.regions().front().updates, 0);
  EXPECT_EQ(map.regions().back().updates, 0);
}

TEST(HeatMap, MemoryStaysBoundedWhateverIsSeen) {
  std::mt19937_64 random(7);
  for (const uint64_t size : {kMiB, 16 * kMiB, 256 * kMiB}) {
    HeatMap map;
    for (int round = 0; round < 20; ++round) {
      std::vector<TrackedRange> ranges;
      for (uint64_t at = kBase; at < kBase + size;) {
        const uint64_t bytes = std::min<uint64_t>(kBasePageBytes * (1 + random() % 2000), size);
        ranges.push_back({at, at + bytes});
        at += bytes + kBasePageBytes * (random() % 2);
      }
      map.track(ranges);
      // The worst case: no two pages alike.
      std::vector<AccessSample> samples;
      for (uint64_t at = kBase; at < kBase + size; at += kBasePageBytes)
        samples.push_back({at, at + kBasePageBytes, static_cast<float>(random() % 1000)});
      map.update(samples, 1);
      expect_sound(map);
    }
  }
}

TEST(HeatMap, UnderPressureTheGreatDifferencesSurvive) {
  HeatMap map;
  map.track(one_range(16 * kMiB));
  std::mt19937_64 random(3);
  std::vector<AccessSample> samples;
  for (uint64_t at = kBase; at < kBase + 16 * kMiB; at += kBasePageBytes) {
    const bool hot = at >= kBase + 4 * kMiB && at < kBase + 8 * kMiB;
    samples.push_back({at, at + kBasePageBytes,
                       (hot ? 1000.0F : 10.0F) * (1 + 0.3F * static_cast<float>(random() % 2))});
  }
  map.update(samples, 1);
  expect_sound(map);
  double hot_seen = 0;
  for (uint64_t at = kBase; at < kBase + 16 * kMiB; at += kBasePageBytes) {
    const bool hot = at >= kBase + 4 * kMiB && at < kBase + 8 * kMiB;
    hot_seen += hot == (heat_at(map, at) > 300);
  }
  EXPECT_GT(hot_seen / 4096, 0.99);
}

TEST(HeatMap, LeavesOutTheSmallestRangesItCannotPayFor) {
  HeatMap map;
  std::vector<TrackedRange> ranges{{kBase, kBase + kMiB}};
  for (uint64_t i = 1; i <= 1000; ++i)
    ranges.push_back({kBase + i * 2 * kMiB, kBase + i * 2 * kMiB + kBasePageBytes});
  map.track(ranges);
  expect_sound(map);
  EXPECT_GE(map.tracked_bytes(), kMiB);
  EXPECT_LT(map.tracked_bytes(), kMiB + 1000 * kBasePageBytes);
}

TEST(HeatMap, TracksNothingToo) {
  HeatMap map;
  map.track({});
  map.update(std::vector<AccessSample>{{0, UINT64_MAX, 1}}, 1);
  EXPECT_TRUE(map.regions().empty());
  EXPECT_EQ(map.memory_bytes(), 0U);
}

TEST(HeatMap, TakesAnyAddressASampleMayHave) {
  HeatMap map;
  map.track(one_range(kMiB));
  map.update(std::vector<AccessSample>{{0, kBase + 4096, 2}, {kBase + 8192, UINT64_MAX, 3}}, 1);
  expect_sound(map);
  EXPECT_FLOAT_EQ(heat_at(map, kBase), 2);
  EXPECT_FLOAT_EQ(heat_at(map, kBase + 4096), 0);
  EXPECT_FLOAT_EQ(heat_at(map, kBase + kMiB - 1), 3);
}

}  // namespace
}  // namespace tierpilot
