#include "coordinator/core/elastic/gang_losses.h"

#include <gtest/gtest.h>

#include <limits>

namespace tierpilot {
namespace {

class GangLossesTest : public ::testing::Test {
 protected:
  static JobPoint point(std::optional<double> loss, uint64_t samples = 0, uint32_t attempt = 1) {
    return {.attempt = attempt,
            .at_ms = 1,
            .iteration = 5,
            .samples = samples,
            .loss = {loss, loss ? "" : "the job did not say"},
            .measures = {}};
  }
  JobPoint say(uint32_t rank, JobPoint point) {
    losses_.merge(7, rank, point);
    return point;
  }
  GangLosses losses_;
};

TEST_F(GangLossesTest, IsTheMeanOverRanksWeightedByTheirSamples) {
  say(1, point(2, 100));
  say(2, point(4, 300));
  EXPECT_DOUBLE_EQ(*say(0, point(1, 100)).loss.value, (1 + 2 + 3 * 4) / 5.0);
}

TEST_F(GangLossesTest, CountsAllAlikeWhereNotAllSayTheirSamples) {
  say(1, point(2, 100));
  EXPECT_DOUBLE_EQ(*say(0, point(1)).loss.value, 1.5);
}

TEST_F(GangLossesTest, IsThatOfRankZeroWhereOthersSayNothing) {
  EXPECT_DOUBLE_EQ(*say(0, point(1)).loss.value, 1);
  say(1, {.attempt = 1, .loss = {}, .measures = {}});
  EXPECT_DOUBLE_EQ(*say(0, point(3)).loss.value, 3);
}

TEST_F(GangLossesTest, IsKnownWhereRankZeroDoesNotSayIts) {
  say(1, point(2));
  EXPECT_DOUBLE_EQ(*say(0, point({})).loss.value, 2);
}

TEST_F(GangLossesTest, LeavesOutWhatIsNoLoss) {
  say(1, point(std::numeric_limits<double>::quiet_NaN()));
  say(2, point(-std::numeric_limits<double>::infinity()));
  say(3, point(3));
  EXPECT_DOUBLE_EQ(*say(0, point(1)).loss.value, 2);
}

TEST_F(GangLossesTest, StaysFiniteWithTheLargestNumbers) {
  const double most = std::numeric_limits<double>::max();
  say(1, point(most, UINT64_MAX));
  EXPECT_DOUBLE_EQ(*say(0, point(most, UINT64_MAX)).loss.value, most);
}

TEST_F(GangLossesTest, WhatOtherRanksSayStaysTheirs) {
  say(0, point(1));
  EXPECT_DOUBLE_EQ(*say(1, point(2)).loss.value, 2);
}

TEST_F(GangLossesTest, ARankThatHasFallenSilentCountsNoLonger) {
  say(1, point(9));
  for (uint64_t i = 0; i < GangLosses::kSilentFor; ++i)
    EXPECT_DOUBLE_EQ(*say(0, point(1)).loss.value, 5);
  EXPECT_DOUBLE_EQ(*say(0, point(1)).loss.value, 1);
}

TEST_F(GangLossesTest, AnEarlierTryCountsNoLonger) {
  say(1, point(9, 0, 1));
  EXPECT_DOUBLE_EQ(*say(0, point(1, 0, 2)).loss.value, 1);
  say(1, point(9, 0, 1));
  EXPECT_DOUBLE_EQ(*say(0, point(1, 0, 2)).loss.value, 1) << "it came late";
}

TEST_F(GangLossesTest, MeasuresAreMeansToo) {
  auto other = point({}), own = point({});
  other.measures = {{"accuracy", {0.5, ""}}, {"other", {7, ""}}};
  own.measures = {{"accuracy", {0.7, ""}}};
  say(1, other);
  const auto merged = say(0, own);
  ASSERT_EQ(merged.measures.size(), 1u);
  EXPECT_DOUBLE_EQ(*merged.measures[0].second.value, 0.6);
}

TEST_F(GangLossesTest, ForgetsGangsThatHaveEnded) {
  say(0, point(1));
  losses_.forget(7);
  EXPECT_EQ(losses_.gangs(), 0u);
}

}  // namespace
}  // namespace tierpilot
