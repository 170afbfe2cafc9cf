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

}  // namespace
}  // namespace tierpilot::swap
