#include "policies/gang/placement/rank_slots.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace tierpilot::gang {
namespace {

// Nodes of four units, so many of them free.
PlacementState cluster(const std::vector<uint32_t>& free_of_node) {
  PlacementState state;
  for (uint32_t node = 0; node < free_of_node.size(); ++node)
    for (uint32_t i = 0; i < 4; ++i) {
      state.node.push_back(node);
      state.free.push_back(i < free_of_node[node]);
      state.per_h.push_back(1e-3);
    }
  return state;
}

Result<RankPlaces> placed(const PlacementState& state, const GangShape& shape,
                          const char* placer = "first-fit") {
  return place_ranks(state, {.work_h = 10}, shape, **make_placer(placer, 1));
}

std::map<uint32_t, uint32_t> ranks_of_nodes(const PlacementState& state, const RankPlaces& places) {
  std::map<uint32_t, uint32_t> ranks;
  for (const auto& units : places.units) ++ranks[state.node_of(units.front())];
  return ranks;
}

TEST(RankSlots, ARankHasItsUnitsOnOneNodeAndNobodyElseHasThem) {
  const auto state = cluster({3, 4, 2});
  const auto places = placed(state, {.ranks = 4, .units_per_rank = 2});
  ASSERT_TRUE(places.has_value());
  ASSERT_EQ(places->units.size(), 4U);
  std::set<uint32_t> seen;
  for (const auto& units : places->units) {
    ASSERT_EQ(units.size(), 2U);
    EXPECT_EQ(state.node_of(units[0]), state.node_of(units[1]));
    for (const uint32_t unit : units) {
      EXPECT_TRUE(state.free[unit]);
      EXPECT_TRUE(seen.insert(unit).second);
    }
  }
}

TEST(RankSlots, UnitsThatAreLeftOverOnNodesMakeNoRank) {
  const auto places = placed(cluster({3, 3, 3}), {.ranks = 4, .units_per_rank = 2});
  ASSERT_FALSE(places.has_value());
  EXPECT_EQ(places.error().code, ErrorCode::kUnavailable);
}

TEST(RankSlots, NoNodeHasMoreThanItMay) {
  const auto state = cluster({4, 4, 4});
  const auto places = placed(state, {.ranks = 6, .ranks_per_node_max = 2});
  ASSERT_TRUE(places.has_value());
  for (const auto& [node, ranks] : ranks_of_nodes(state, *places)) EXPECT_EQ(ranks, 2U);
}

TEST(RankSlots, NoNodeHasFewerThanItMust) {
  const auto state = cluster({3, 4, 4});
  for (const char* placer : {"first-fit", "spread", "best-fit"}) {
    const auto places = placed(state, {.ranks = 5, .ranks_per_node_min = 2}, placer);
    ASSERT_TRUE(places.has_value()) << placer;
    EXPECT_EQ(places->units.size(), 5U);
    for (const auto& [node, ranks] : ranks_of_nodes(state, *places)) EXPECT_GE(ranks, 2U);
  }
}

TEST(RankSlots, WhatNoNodesCanHaveIsSaid) {
  // Three on one node leave two for another, which is fewer than three.
  const auto places = placed(cluster({4, 4}), {.ranks = 5, .ranks_per_node_min = 3});
  ASSERT_FALSE(places.has_value());
  EXPECT_NE(places.error().message.find("at least 3"), std::string::npos);
}

TEST(RankSlots, OfANodeTheSoundestUnitsAreTaken) {
  auto state = cluster({4});
  state.per_h = {1e-1, 1e-4, 1e-1, 1e-4};
  const auto places = placed(state, {.ranks = 1, .units_per_rank = 2});
  ASSERT_TRUE(places.has_value());
  EXPECT_EQ(places->units[0], (std::vector<uint32_t>{1, 3}));
}

// Answers as it is told, and keeps what it was shown.
class Told : public Placer {
 public:
  explicit Told(std::vector<uint32_t> answer) : answer_(std::move(answer)) {}
  std::vector<uint32_t> place(const PlacementState& state, const Job&) override {
    seen = state;
    return answer_;
  }
  PlacementState seen;

 private:
  std::vector<uint32_t> answer_;
};

TEST(RankSlots, AnAnswerThatWasNotOfferedIsRefusedWithWhatIsWrongWithIt) {
  const auto state = cluster({4, 1});
  const auto refused = [&](std::vector<uint32_t> answer) {
    Told placer(std::move(answer));
    const auto places = place_ranks(state, {.work_h = 10}, {.ranks = 2}, placer);
    if (places) return std::string("taken");
    EXPECT_EQ(places.error().code, ErrorCode::kInvalid);
    return places.error().message;
  };
  EXPECT_EQ(refused({0, 4}), "taken");
  EXPECT_EQ(refused({0}), "it chose places for 1 ranks, not for 2");
  EXPECT_EQ(refused({0, 1, 2}), "it chose places for 3 ranks, not for 2");
  EXPECT_EQ(refused({0, 5}), "it chose unit 5, which is not free");
  EXPECT_EQ(refused({0, 0}), "it chose unit 0 twice");
  EXPECT_EQ(refused({0, 8}), "it chose unit 8 of 8");
}

TEST(RankSlots, PlacersSeeTheWholeClusterInSlots) {
  auto state = cluster({2, 4});
  state.now_h = 7;
  state.waiting_units = 6;
  state.costs.repair_h = 9;
  state.rate_shape.assign(8, 2.0);
  state.per_h[2] = 5e-3;  // a busy one
  Told placer({0, 2});
  const auto places = place_ranks(state, {.work_h = 10}, {.ranks = 2, .units_per_rank = 2}, placer);
  ASSERT_TRUE(places) << places.error().message;
  EXPECT_EQ(placer.seen.now_h, 7);
  EXPECT_EQ(placer.seen.waiting_units, 3) << "in slots";
  EXPECT_EQ(placer.seen.costs.repair_h, 9);
  EXPECT_EQ(placer.seen.free, std::vector<bool>({true, false, true, true}));
  EXPECT_DOUBLE_EQ(placer.seen.per_h[1], 6e-3) << "of busy ones, too";
  // Two rates that are as sure make a sum that is surer.
  EXPECT_DOUBLE_EQ(placer.seen.rate_shape[0], 4);
  EXPECT_DOUBLE_EQ(places->expected_h,
                   expected_hours(placer.seen, {.units = 2, .work_h = 10}, 10, {0, 2}));
}

TEST(RankSlots, WhatAGangMayNotHaveOfANodeDoesNotLookTaken) {
  Told placer({0, 1});
  const auto state = cluster({4, 4});
  ASSERT_TRUE(place_ranks(state, {.work_h = 10}, {.ranks = 2, .ranks_per_node_max = 1}, placer));
  EXPECT_EQ(placer.seen.units_per_node, 1U);
  EXPECT_EQ(placer.seen.free, std::vector<bool>({true, true}));
}

}  // namespace
}  // namespace tierpilot::gang
