#include "policies/sim/sharing/full_load/restricted_master.h"

#include <gtest/gtest.h>

namespace tierpilot::sharing {
namespace {

TEST(RestrictedMaster, MixesColumnsAndPricesWhatTheyTake) {
  RestrictedMaster master(2);
  EXPECT_TRUE(master.add({10, {2, 0}}, 0));
  EXPECT_DOUBLE_EQ(master.value(), 5);
  EXPECT_TRUE(master.add({4, {0.5, 0}}, 1));
  EXPECT_DOUBLE_EQ(master.value(), 6);
  ASSERT_EQ(master.mix().size(), 2U);
  for (const auto& [number, part] : master.mix())
    EXPECT_DOUBLE_EQ(part, number == 0 ? 1.0 / 3 : 2.0 / 3);
  EXPECT_DOUBLE_EQ(master.prices()[0], 4);
  EXPECT_DOUBLE_EQ(master.prices()[1], 0);
}

TEST(RestrictedMaster, WhatMakesTheMixNoBetterIsRefused) {
  RestrictedMaster master(1);
  EXPECT_FALSE(master.add({0, {0}}, 0));
  EXPECT_TRUE(master.add({5, {0.5}}, 1));
  EXPECT_FALSE(master.add({5, {0.7}}, 2));
  EXPECT_DOUBLE_EQ(master.value(), 5);
}

TEST(RestrictedMaster, WithoutRowsTheBestColumnIsAll) {
  RestrictedMaster master(0);
  EXPECT_TRUE(master.add({3, {}}, 0));
  EXPECT_TRUE(master.add({7, {}}, 1));
  EXPECT_DOUBLE_EQ(master.value(), 7);
}

}  // namespace
}  // namespace tierpilot::sharing
