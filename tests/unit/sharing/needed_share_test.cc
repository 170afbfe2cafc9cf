#include "policies/sharing/live/needed_share.h"

#include <gtest/gtest.h>

namespace tierpilot::sharing {
namespace {

// With so much of the unit all the time, is the work done in the time that is aimed at?
bool is_done(const WorkLeft& left, uint32_t milli, double promise_left_s, double retained,
             double aim) {
  const double rest_s = left.run_s - left.start_s;
  const double takes_s =
      left.start_s / speed_with(milli, kWholeUnit) + rest_s / speed_with(milli, left.need_milli);
  return takes_s <= promise_left_s * aim * retained * (1 + 1e-9);
}

TEST(NeededShare, IsTheLeastThatIsEnough) {
  for (const uint32_t need : {100u, 400u, 1000u})
    for (const double start_s : {0.0, 1.0, 5.0})
      for (const double rest_s : {1.0, 20.0, 100.0})
        for (const double promise_s : {10.0, 60.0, 300.0})
          for (const double aim : {kAim, kTightAim}) {
            const WorkLeft left{need, start_s + rest_s, start_s};
            const auto milli = needed_milli(left, promise_s, 0.9, aim);
            const uint32_t usable = start_s > 0 ? kWholeUnit : need;
            ASSERT_GT(milli, 0u);
            ASSERT_LE(milli, usable);
            if (is_done(left, usable, promise_s, 0.9, aim)) {
              EXPECT_TRUE(is_done(left, milli, promise_s, 0.9, aim))
                  << need << " " << start_s << " " << rest_s << " " << promise_s;
              if (milli > 1) EXPECT_FALSE(is_done(left, milli - 1, promise_s, 0.9, aim));
            } else {
              EXPECT_EQ(milli, usable);
            }
          }
}

TEST(NeededShare, WithoutAPromiseIsWhatItUses) {
  EXPECT_EQ(needed_milli({300, 50, 5}, kNoPromise, 1), 300u);
  EXPECT_EQ(needed_milli({300, 0, 0}, kNoPromise, 1), 300u);
}

TEST(NeededShare, IsAllThatItCanUseOnceItIsLate) {
  EXPECT_EQ(needed_milli({300, 50, 0}, -1, 1), 300u);
  EXPECT_EQ(needed_milli({300, 50, 2}, 0, 1), 1000u);
}

}  // namespace
}  // namespace tierpilot::sharing
