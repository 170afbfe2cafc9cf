#include "swap/step_segments.h"

#include <gtest/gtest.h>

namespace tierpilot::swap {
namespace {

TEST(StepSegments, OneThatIsOpenEndsWithItsStep) {
  StepSegments segments("checkpoint");
  segments.begin(1, 100, 0);
  segments.finish_unsaved({});
  // Neither belongs to a segment any more.
  segments.saved(100);
  segments.end(true, 10);
  EXPECT_FALSE(segments.began_with(1));
  segments.begin(2, 100, 20);
  EXPECT_TRUE(segments.began_with(2)) << "another one may begin";
}

// It was known before without any, so that nobody looks closely at it any more.
TEST(StepSegments, WhereAllAreComputedAgainNothingHasToBeMeasured) {
  StepSegments segments("checkpoint");
  const StepEnd unobserved;
  for (int step = 0; step < 3; ++step) {
    EXPECT_EQ(segments.begin(1, 100, 0), step > 0) << step;
    segments.end(true, 10);
    auto seen = unobserved;
    seen.step.time_ns = {1, 1};
    segments.finish(seen, 1000, {}, true);
  }
}

}  // namespace
}  // namespace tierpilot::swap
