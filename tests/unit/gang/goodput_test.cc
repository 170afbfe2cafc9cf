#include "policies/gang/placement/goodput.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tierpilot::gang {
namespace {

TEST(Goodput, IsTheShareOfTheUnitsTimeThatBecameKeptWork) {
  EXPECT_DOUBLE_EQ(goodput({.held_h = 10, .kept_h = 10}), 1);
  EXPECT_DOUBLE_EQ(goodput({.held_h = 10, .kept_h = 5}), 0.5);
  EXPECT_DOUBLE_EQ(goodput({.held_h = 10, .kept_h = 5, .stalled_h = 1}), 0.4);
  EXPECT_DOUBLE_EQ(goodput({.held_h = 10, .kept_h = 0}), 0);
}

TEST(Goodput, ATryOnSlowLinksCountsLessWhereItsOwnerSaidHowLongItTakes) {
  EXPECT_DOUBLE_EQ(goodput({.held_h = 10, .kept_h = 10, .estimated_h = 8}), 0.8);
  EXPECT_DOUBLE_EQ(goodput({.held_h = 10, .kept_h = 5, .stalled_h = 1, .estimated_h = 2}), 0.2);
  EXPECT_DOUBLE_EQ(goodput({.held_h = 10, .kept_h = 8, .estimated_h = 20}), 0.8)
      << "to be faster than was thought counts for nothing";
}

TEST(Goodput, StaysWithinItsBoundsWhateverWasMeasured) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double endless = std::numeric_limits<double>::infinity();
  const double values[] = {-1, 0, 1e-9, 1, 3, 1e300, endless, nan};
  for (const double held : values)
    for (const double kept : values)
      for (const double stalled : values)
        for (const double estimated : values) {
          const double value = goodput(
              {.held_h = held, .kept_h = kept, .stalled_h = stalled, .estimated_h = estimated});
          EXPECT_GE(value, kLeastGoodput) << held << ' ' << kept << ' ' << stalled;
          EXPECT_LE(value, kMostGoodput) << held << ' ' << kept << ' ' << stalled;
        }
}

}  // namespace
}  // namespace tierpilot::gang
