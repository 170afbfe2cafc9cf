#include "model/resources.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

constexpr Resources kNode{.units = 8, .gpus = 2, .memory_bytes = 100, .fast_bytes = 40};

TEST(Resources, HoldWhatIsNoMoreOfAnyKind) {
  EXPECT_TRUE(kNode.hold(kNode));
  EXPECT_TRUE(kNode.hold({}));
  EXPECT_FALSE(kNode.hold({.units = 9}));
  EXPECT_FALSE(kNode.hold({.gpus = 3}));
  EXPECT_FALSE(kNode.hold({.memory_bytes = 101}));
  EXPECT_FALSE(kNode.hold({.fast_bytes = 41}));
}

TEST(Resources, TheScarcestKindSaysHowManyFit) {
  EXPECT_EQ(kNode.times({.units = 1}), 8u);
  EXPECT_EQ(kNode.times({.units = 3}), 2u);
  EXPECT_EQ(kNode.times({.units = 1, .gpus = 1}), 2u);
  EXPECT_EQ(kNode.times({.units = 1, .memory_bytes = 30}), 3u);
  EXPECT_EQ(kNode.times({.units = 9}), 0u);
}

TEST(Resources, DataThatAllReadIsThereOnce) {
  EXPECT_EQ(kNode.times({.units = 1, .fast_bytes = 40}), 8u);
  EXPECT_EQ(kNode.times({.units = 1, .fast_bytes = 41}), 0u);
}

TEST(Resources, TheMostOfEachKind) {
  const auto most =
      most_of({.units = 1, .gpus = 4, .memory_bytes = 5}, {.units = 2, .fast_bytes = 7});
  EXPECT_EQ(most, (Resources{2, 4, 5, 7}));
}

}  // namespace
}  // namespace tierpilot
