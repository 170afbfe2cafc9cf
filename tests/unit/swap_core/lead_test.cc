// Copies in begin as late as they may.
#include "swap/lead.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

constexpr int64_t kStep_ns = 100'000'000;

void steps(Lead& lead, int count, int64_t stall_ns) {
  for (int i = 0; i < count; ++i) lead.step_ended(kStep_ns, stall_ns);
}

TEST(Lead, GrowsWhereStepsWaitAndHasABound) {
  Lead lead;
  const double before = lead.factor();
  steps(lead, 1, kStep_ns / 10);
  EXPECT_GT(lead.factor(), before);
  steps(lead, 100, kStep_ns / 10);
  EXPECT_DOUBLE_EQ(lead.factor(), 8);
}

TEST(Lead, ShrinksWhereNothingWaitsButNotBelowWhatCopiesTake) {
  Lead lead;
  steps(lead, 20, kStep_ns / 10);
  const double most = lead.factor();
  steps(lead, 10, 0);
  EXPECT_LT(lead.factor(), most);
  steps(lead, 200, 0);
  EXPECT_DOUBLE_EQ(lead.factor(), 1);
}

TEST(Lead, StaysWhereStepsWaitALittle) {
  Lead lead;
  const double before = lead.factor();
  steps(lead, 10, kStep_ns / 100);
  EXPECT_DOUBLE_EQ(lead.factor(), before);
}

TEST(Lead, ShrinksSlowerThanItGrows) {
  Lead lead;
  steps(lead, 5, kStep_ns / 10);
  const double grown = lead.factor();
  steps(lead, 5, 0);
  EXPECT_GT(lead.factor(), grown / 2);
}

}  // namespace
}  // namespace tierpilot::swap
