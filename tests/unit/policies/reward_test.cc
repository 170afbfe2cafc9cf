#include "policies/placement/reward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

constexpr RewardSettings kHalf{.utilisation_weight = 0.5, .penalty_floor = -0.5};

TEST(Reward, WithoutEvictionMixesUtilisationAndSpeed) {
  const auto parts =
      compute_reward({.utilisation = 0.6, .service_ns = 40e6, .reference_ns = 10e6}, kHalf);
  ASSERT_TRUE(parts);
  EXPECT_DOUBLE_EQ(parts->latency_term, 0.25);
  EXPECT_DOUBLE_EQ(parts->penalty_term, 0);
  EXPECT_FALSE(parts->evicted);
  EXPECT_DOUBLE_EQ(parts->reward, 0.5 * 0.6 + 0.5 * 0.25);
}

TEST(Reward, EvictionTimeIsTakenOffTheSpeed) {
  // 1 MB at 1 GB/s takes 1 ms, a tenth of the reference.
  const auto parts = compute_reward({.utilisation = 0.6,
                                     .service_ns = 40e6,
                                     .reference_ns = 10e6,
                                     .evicted_bytes = 1'000'000,
                                     .evict_bytes_per_s = 1e9},
                                    kHalf);
  ASSERT_TRUE(parts);
  EXPECT_TRUE(parts->evicted);
  EXPECT_DOUBLE_EQ(parts->penalty_term, 0.1);
  EXPECT_NEAR(parts->reward, 0.5 * 0.6 + 0.5 * (0.25 - 0.1), 1e-12);
}

TEST(Reward, AHugeEvictionIsBoundedByBeta) {
  const auto parts = compute_reward({.utilisation = 0,
                                     .service_ns = 20e6,
                                     .reference_ns = 10e6,
                                     .evicted_bytes = 1'000'000'000'000,
                                     .evict_bytes_per_s = 1e9},
                                    {.utilisation_weight = 0.2, .penalty_floor = -0.5});
  ASSERT_TRUE(parts);
  EXPECT_DOUBLE_EQ(parts->reward, 0.8 * (-0.5 * 0.5));
}

TEST(Reward, FasterThanLocalMemoryIsNoBetterThanLocalMemory) {
  const auto parts =
      compute_reward({.utilisation = 1.5, .service_ns = 1, .reference_ns = 10e6}, kHalf);
  ASSERT_TRUE(parts);
  EXPECT_DOUBLE_EQ(parts->reward, 1.0);
}

TEST(Reward, WhatWasNotMeasuredIsRefused) {
  const ServiceMeasure good{.utilisation = 0.5, .service_ns = 1e6, .reference_ns = 1e6};
  for (auto spoil : {+[](ServiceMeasure& m) { m.service_ns = 0; },
                     +[](ServiceMeasure& m) { m.reference_ns = -1; },
                     +[](ServiceMeasure& m) { m.service_ns = std::nan(""); },
                     +[](ServiceMeasure& m) { m.utilisation = std::nan(""); },
                     +[](ServiceMeasure& m) { m.evicted_bytes = 5; }}) {
    ServiceMeasure measure = good;
    spoil(measure);
    const auto parts = compute_reward(measure, kHalf);
    ASSERT_FALSE(parts);
    EXPECT_EQ(parts.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(parts.error().message, HasSubstr("reward: "));
  }
}

}  // namespace
}  // namespace tierpilot
