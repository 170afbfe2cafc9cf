#include "policies/scheduling/service_order.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

constexpr auto kShortest = ServiceOrder::kShortest;

TaskFeatures task_of(double operations, uint32_t units = 1) {
  return {.operations = operations, .units = units};
}

TEST(ServiceOrder, OfTasksThatCameTogetherTheShortestStandsFirst) {
  ClusterPace pace;
  EXPECT_LT(pace.place_s(kShortest, task_of(1e8), 5), pace.place_s(kShortest, task_of(2e8), 5));
  EXPECT_LT(pace.place_s(kShortest, task_of(1e8, 1), 5),
            pace.place_s(kShortest, task_of(1e8, 2), 5))
      << "it keeps twice as much from others";
}

TEST(ServiceOrder, TasksThatDoNotTellStandInTheOrderOfArrival) {
  ClusterPace pace;
  EXPECT_LT(pace.place_s(kShortest, task_of(0), 5), pace.place_s(kShortest, task_of(0), 5.001));
  const double before_s = pace.place_s(kShortest, task_of(0), 5);
  pace.ran(1e15, 1);
  EXPECT_EQ(pace.place_s(kShortest, task_of(0), 5), before_s) << "whatever others do";
}

// One of a second at 1e9 operations/s and one of 11 s: overtaken by those that come within 50 s.
TEST(ServiceOrder, ALongTaskIsOvertakenForFiveTimesTheDifferenceAndNoLonger) {
  ClusterPace pace;
  pace.ran(1e9, 1);
  const double waits = pace.place_s(kShortest, task_of(11e9), 1'000'000);
  EXPECT_LT(pace.place_s(kShortest, task_of(1e9), 1'000'049), waits);
  EXPECT_GT(pace.place_s(kShortest, task_of(1e9), 1'000'051), waits);
}

TEST(ServiceOrder, TimeIsReckonedByWhatTheClusterDid) {
  ClusterPace slow, fast;
  slow.ran(1e8, 1), fast.ran(1e10, 1);
  EXPECT_NEAR(slow.place_s(kShortest, task_of(1e9), 0), 10, 1e-9);
  EXPECT_NEAR(fast.place_s(kShortest, task_of(1e9), 0), 0.1, 1e-9);
  slow.fetched(1e8, 1), fast.fetched(1e10, 1);
  EXPECT_GT(slow.far_s(kShortest, 1'000'000), 50 * fast.far_s(kShortest, 1'000'000));
}

TEST(ServiceOrder, FarDataComesLaterThanItsTransferAlone) {
  ClusterPace pace;
  pace.fetched(1e9, 1);
  EXPECT_EQ(pace.far_s(kShortest, 0), 0);
  EXPECT_GE(pace.far_s(kShortest, 1'000'000'000), 1);
}

TEST(ServiceOrder, FirstComeFirstServedKnowsNumbersOnly) {
  ClusterPace pace;
  EXPECT_EQ(pace.place_s(ServiceOrder::kArrival, task_of(1e12), 3), 0);
  EXPECT_EQ(pace.far_s(ServiceOrder::kArrival, 1'000'000'000), 0);
}

TEST(ServiceOrder, HasNames) {
  EXPECT_EQ(service_order_from_name("arrival"), ServiceOrder::kArrival);
  EXPECT_EQ(service_order_from_name("shortest"), ServiceOrder::kShortest);
  EXPECT_FALSE(service_order_from_name("Shortest"));
}

}  // namespace
}  // namespace tierpilot
