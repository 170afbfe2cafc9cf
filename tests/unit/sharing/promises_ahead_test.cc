// What starts leaves to those that wait before it what they were promised.
#include "policies/sharing/live/promises_ahead.h"

#include <gtest/gtest.h>

#include "tests/unit/sharing/live_scene.h"

namespace tierpilot::sharing {
namespace {

constexpr double kRunS = 10, kRunUpperS = 15;

WaitingJob promised(double promise_s) {
  auto job = waiting(kSensitive, 1000, kRunS, promise_s);
  job.predicted["cpu"].run_upper_s = kRunUpperS;
  return job;
}

bool would_break(const WaitingJob& before, const WaitingJob& newcomer) {
  const auto share = policy("share");
  std::vector<LiveNode> nodes{{unit_with({})}};
  PromisesAhead ahead(*share);
  ahead.waits(before, true);
  return ahead.would_break(nodes, newcomer, {.node = 0, .unit = 0, .share = {600, 0}});
}

TEST(PromisesAhead, WhatIsSureStaysSo) {
  EXPECT_TRUE(would_break(promised(20), waiting(kSensitive, 600, 8)));
  EXPECT_FALSE(would_break(promised(40), waiting(kSensitive, 600, 8))) << "there is time for both";
}

TEST(PromisesAhead, WhatIsNotSureAnyMoreIsNotGivenUp) {
  EXPECT_TRUE(would_break(promised(14), waiting(kSensitive, 600, 8)));
  EXPECT_FALSE(would_break(promised(14), waiting(kBestEffort, 600, 8))) << "it gives way";
}

TEST(PromisesAhead, WhatCannotBeKeptKeepsNobodyWaiting) {
  EXPECT_FALSE(would_break(promised(9), waiting(kSensitive, 600, 8)));
}

}  // namespace
}  // namespace tierpilot::sharing
