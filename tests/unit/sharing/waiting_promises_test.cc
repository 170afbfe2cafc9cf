// What starts leaves to those that wait what they were promised.
#include "policies/sharing/live/waiting_promises.h"

#include <gtest/gtest.h>

#include "tests/unit/sharing/live_scene.h"

namespace tierpilot::sharing {
namespace {

constexpr double kRunS = 10, kRunUpperS = 15;

WaitingJob promised(double promise_s, uint64_t id = 1) {
  auto job = waiting(kSensitive, 1000, kRunS, promise_s);
  job.predicted["cpu"].run_upper_s = kRunUpperS;
  job.id = id;
  return job;
}

bool would_break(std::vector<WaitingJob> made, const WaitingJob& newcomer,
                 size_t most_plans = SIZE_MAX) {
  const auto share = policy("share");
  std::vector<LiveNode> nodes{{unit_with({})}};
  WaitingPromises promises(*share, std::move(made), most_plans);
  const bool would =
      promises.would_break(nodes, newcomer, {.node = 0, .unit = 0, .share = {600, 0}});
  EXPECT_TRUE(nodes[0][0].jobs.empty()) << "as it was";
  EXPECT_EQ(promises.refusals(), would ? 1U : 0U);
  return would;
}

TEST(WaitingPromises, WhatIsSureStaysSo) {
  EXPECT_TRUE(would_break({promised(20)}, waiting(kSensitive, 600, 8)));
  EXPECT_FALSE(would_break({promised(40)}, waiting(kSensitive, 600, 8))) << "time for both";
}

TEST(WaitingPromises, WhatIsNotSureAnyMoreIsNotGivenUp) {
  EXPECT_TRUE(would_break({promised(14)}, waiting(kSensitive, 600, 8)));
  EXPECT_FALSE(would_break({promised(14)}, waiting(kBestEffort, 600, 8))) << "it gives way";
}

TEST(WaitingPromises, WhatCannotBeKeptKeepsNobodyWaiting) {
  EXPECT_FALSE(would_break({promised(9)}, waiting(kSensitive, 600, 8)));
}

// Of two nodes the second job may use the second one only, on which the first starts.
bool would_break_there(const WaitingJob& first, WaitingJob second, size_t most_plans = SIZE_MAX) {
  const auto share = policy("share");
  std::vector<LiveNode> nodes{{unit_with({})}, {unit_with({})}};
  second.only_node = 1;
  WaitingPromises promises(*share, {first, second}, most_plans);
  return promises.would_break(nodes, first, {.node = 1, .unit = 0, .share = {600, 0}});
}

TEST(WaitingPromises, WhoWasPromisedFirstLeavesTheOnlyUnitOfAnotherAsLongAsItCan) {
  EXPECT_TRUE(would_break_there(promised(100, 1), promised(20, 2)));
  EXPECT_FALSE(would_break_there(promised(100, 1), promised(60, 2))) << "there is time for both";
  EXPECT_FALSE(would_break_there(promised(14, 1), promised(20, 2))) << "it is in a hurry";
}

TEST(WaitingPromises, WhoWasPromisedLaterLeavesTheFirstItsTime) {
  const auto first = promised(22, 1), second = promised(20, 2);
  EXPECT_FALSE(would_break({first, second}, first));
  EXPECT_TRUE(would_break({first, second}, second));
}

// Others are looked at for the same number.
TEST(WaitingPromises, WhoWasPromisedDoesNotWaitForPlans) {
  EXPECT_FALSE(would_break_there(promised(100, 1), promised(20, 2), 4));
  EXPECT_TRUE(would_break({promised(100, 1), promised(20, 2)}, waiting(kSensitive, 600, 8), 2));
}

}  // namespace
}  // namespace tierpilot::sharing
