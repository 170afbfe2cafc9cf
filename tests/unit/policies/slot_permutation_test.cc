#include "policies/placement/published/slot_permutation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace tierpilot {
namespace {

using Layout = ObservationLayout;

std::vector<float> numbered() {
  std::vector<float> values(Layout::kSize);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(SlotPermutation, MovesAllFeaturesOfANodeTogether) {
  std::mt19937_64 generator(3);
  const SlotMask slots(0b1011);
  std::set<std::vector<uint32_t>> orders;
  for (int i = 0; i < 100; ++i) {
    const SlotPermutation permutation = random_permutation(slots, generator);
    std::vector<float> out{-1};
    permutation.append(numbered(), out);
    ASSERT_EQ(out.size(), Layout::kSize + 1);
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      const uint32_t to = permutation.slot(slot);
      for (size_t feature : {Layout::kUtilisation, Layout::kFreeFast, Layout::kOverlap})
        ASSERT_EQ(out[1 + feature + to], static_cast<float>(feature + slot));
      if (!slots[slot]) {
        ASSERT_EQ(to, slot);
      }
    }
    EXPECT_EQ(out.back(), static_cast<float>(Layout::kWrites)) << "scalars stay";
    orders.insert({permutation.slot(0), permutation.slot(1), permutation.slot(3)});
  }
  EXPECT_EQ(orders.size(), 6u) << "every order of three nodes comes up";
}

TEST(SlotPermutation, TheDefaultChangesNothing) {
  std::vector<float> out;
  SlotPermutation().append(numbered(), out);
  EXPECT_EQ(out, numbered());
  EXPECT_EQ(SlotPermutation().slot(127), 127u);
}

}  // namespace
}  // namespace tierpilot
