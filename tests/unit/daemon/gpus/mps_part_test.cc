// What clients of MPS ask for.
#include "daemon/agent/gpus/mps_part.h"

#include <gtest/gtest.h>

namespace tierpilot::agent {
namespace {

constexpr uint32_t kOfAnH200 = 132;

uint32_t percent(uint32_t milli, uint32_t multiprocessors) {
  return mps_part(milli, multiprocessors).percent;
}

TEST(MpsPart, IsTheLeastPercentThatGivesTheShareInPairs) {
  EXPECT_EQ(percent(300, kOfAnH200), 31u);
  EXPECT_EQ(mps_part(300, kOfAnH200).milli, 40 * 1000 / kOfAnH200);
  EXPECT_EQ(percent(600, kOfAnH200), 61u);
  EXPECT_EQ(mps_part(600, kOfAnH200).milli, 80 * 1000 / kOfAnH200);
  EXPECT_EQ(percent(500, kOfAnH200), 50u);
  EXPECT_EQ(mps_part(500, kOfAnH200).milli, 500u);
}

TEST(MpsPart, IsNeverLessThanTheShareNorMoreThanAll) {
  for (const uint32_t multiprocessors : {0u, 1u, 2u, 7u, 46u, 108u, 132u})
    for (uint32_t milli = 0; milli <= 1100; ++milli) {
      const auto part = mps_part(milli, multiprocessors);
      EXPECT_GE(part.milli, std::min(milli, 1000u)) << milli << " of " << multiprocessors;
      EXPECT_LE(part.milli, 1000u);
      EXPECT_GE(part.percent, 1u);
      EXPECT_LE(part.percent, 100u);
    }
  EXPECT_EQ(percent(1000, kOfAnH200), 100u);
  EXPECT_EQ(percent(999, kOfAnH200), 100u);
}

TEST(MpsPart, IsOnePercentMoreWhereTheirNumberIsNotKnown) {
  EXPECT_EQ(percent(300, 0), 31u);
  EXPECT_EQ(percent(301, 0), 32u);
  EXPECT_EQ(percent(1000, 0), 100u);
  EXPECT_EQ(mps_part(300, 0).milli, 300u);
}

TEST(MpsPart, MultiprocessorsAreToldByCores) {
  Gpu gpu;
  EXPECT_EQ(multiprocessors_of(gpu), 0u);
  gpu.cores = 16896;
  EXPECT_EQ(multiprocessors_of(gpu), 0u);
  gpu.compute_capability = 9.0;
  EXPECT_EQ(multiprocessors_of(gpu), kOfAnH200);
  gpu.cores = 6912;
  gpu.compute_capability = 8.0;
  EXPECT_EQ(multiprocessors_of(gpu), 108u);
  gpu.cores = 4608;
  gpu.compute_capability = 7.5;
  EXPECT_EQ(multiprocessors_of(gpu), 0u);
}

}  // namespace
}  // namespace tierpilot::agent
