#include "base/histogram.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

TEST(Histogram, BucketsRoundTripAndRise) {
  for (size_t b = 1; b < Histogram::kBuckets; ++b) {
    EXPECT_GT(Histogram::bucket_floor(b), Histogram::bucket_floor(b - 1));
    EXPECT_EQ(Histogram::bucket_of(Histogram::bucket_floor(b)), b);
  }
  EXPECT_LT(Histogram::bucket_of(UINT64_MAX), Histogram::kBuckets);
}

TEST(Histogram, QuantilesAreWithinABucket) {
  Histogram h;
  for (uint64_t v = 1; v <= 100'000; ++v) h.add(v);
  EXPECT_NEAR(h.quantile(0.5), 50'000, 50'000 / 16.0);
  EXPECT_NEAR(h.quantile(0.99), 99'000, 99'000 / 16.0);
  EXPECT_DOUBLE_EQ(h.quantile(1.0), 100'000);
  EXPECT_DOUBLE_EQ(h.quantile(0), 1);
}

TEST(Histogram, MergeAddsUp) {
  Histogram a, b;
  a.add(10, 3);
  b.add(1000);
  a.merge(b);
  EXPECT_EQ(a.count(), 4u);
  EXPECT_EQ(a.min(), 10u);
  EXPECT_EQ(a.max(), 1000u);
  EXPECT_DOUBLE_EQ(a.mean(), 1030 / 4.0);
}

TEST(Histogram, EmptyIsZero) {
  Histogram h;
  EXPECT_EQ(h.quantile(0.5), 0);
  EXPECT_EQ(h.min(), 0u);
}

}  // namespace
}  // namespace tierpilot
