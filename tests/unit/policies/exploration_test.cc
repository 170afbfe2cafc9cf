#include "policies/placement/published/exploration.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace tierpilot {
namespace {

std::vector<float> q_of(std::initializer_list<float> first) {
  std::vector<float> q(kSlots, 100.0F);  // slots without a candidate look tempting
  std::copy(first.begin(), first.end(), q.begin());
  return q;
}

TEST(Exploration, GreedyStaysAmongCandidates) {
  std::mt19937_64 generator(1);
  const auto q = q_of({1, 3, 2});
  const SlotChoice choice = choose_slot(q, SlotMask(0b101), 0, generator);
  EXPECT_EQ(choice.slot, 2u);
  EXPECT_FALSE(choice.explored);
}

TEST(Exploration, ExploresOtherCandidatesAtTheAskedRate) {
  std::mt19937_64 generator(1);
  const auto q = q_of({1, 3, 2, 0});
  std::map<uint32_t, int> explored;
  int greedy = 0;
  for (int i = 0; i < 20'000; ++i) {
    const SlotChoice choice = choose_slot(q, SlotMask(0b1111), 0.05, generator);
    if (choice.explored)
      ++explored[choice.slot];
    else
      greedy += choice.slot == 1;
  }
  EXPECT_NEAR(greedy, 19'000, 200);
  EXPECT_EQ(explored.count(1), 0u) << "exploring means another node than the best";
  EXPECT_EQ(explored.size(), 3u);
  for (const auto& [slot, count] : explored) EXPECT_NEAR(count, 333, 90) << slot;
}

TEST(Exploration, ASingleCandidateIsAlwaysTaken) {
  std::mt19937_64 generator(1);
  for (int i = 0; i < 100; ++i) {
    const SlotChoice choice = choose_slot(q_of({1, 2}), SlotMask(1), 1.0, generator);
    EXPECT_EQ(choice.slot, 0u);
    EXPECT_FALSE(choice.explored);
  }
}

TEST(Exploration, ValuesThatAreNotFiniteAreNeverTheBest) {
  const auto q = q_of({std::nanf(""), -5, INFINITY});
  EXPECT_EQ(greedy_slot(q, SlotMask(0b111)), 1u);
  EXPECT_EQ(greedy_slot(q, SlotMask(0b101)), kSlots);
  EXPECT_EQ(greedy_slot(q, SlotMask()), kSlots);
}

}  // namespace
}  // namespace tierpilot
