// Slots of nodes, and what is summed over those that are up.
#include "coordinator/core/nodes/registry.h"

#include <gtest/gtest.h>

namespace tierpilot {
namespace {

NodeFacts facts_of(const std::string& name, uint32_t units = 4) {
  NodeFacts facts;
  facts.name = name;
  facts.units = units;
  facts.memory_bytes = 1 << 30;
  return facts;
}

TEST(Registry, GivesTheLowestSlotThatNobodyHasEvenOneThatIsAway) {
  Registry registry;
  registry.slots().remember("away", 1);
  EXPECT_EQ((*registry.add(facts_of("a")))->slot, 0u);
  EXPECT_EQ((*registry.add(facts_of("b")))->slot, 2u);
  EXPECT_EQ((*registry.add(facts_of("a")))->slot, 0u) << "as before";
  EXPECT_EQ((*registry.add(facts_of("away")))->slot, 1u);
  registry.remove("a");
  EXPECT_EQ((*registry.add(facts_of("c")))->slot, 0u);
  EXPECT_EQ((*registry.add(facts_of("d")))->slot, 3u);
  EXPECT_EQ(registry.slots().name_of(1), "away");
  registry.slots().remember("away", 9);
  EXPECT_EQ(registry.slots().name_of(1), "");
  EXPECT_EQ((*registry.add(facts_of("e")))->slot, 1u) << "nobody has it any more";
}

TEST(Registry, IsFullWhenEverySlotIsTakenAndHasRoomWhenOneGoes) {
  Registry registry;
  for (uint32_t i = 0; i < NodeSlots::kMost; ++i) registry.slots().remember(std::to_string(i), i);
  const auto refused = registry.add(facts_of("one-more"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kExhausted);
  registry.remove("7");
  EXPECT_EQ((*registry.add(facts_of("one-more")))->slot, 7u);
}

TEST(Registry, SumsOverTheNodesThatAreUpAsTheyComeAndGo) {
  Registry registry;
  auto& a = **registry.add(facts_of("a", 4));
  auto& b = **registry.add(facts_of("b", 2));
  EXPECT_EQ(registry.summary().total_units, 6u);
  registry.assign(a, {1, 1}, 3);
  registry.run(a, 3);
  EXPECT_EQ(registry.summary().busy_units, 3u);
  registry.set_life(a, NodeLife::kLost);
  EXPECT_EQ(registry.summary().busy_units, 0u);
  EXPECT_EQ(registry.summary().total_units, 2u);
  EXPECT_EQ(registry.summary().up_count(), 1u);
  registry.set_life(a, NodeLife::kUp);
  registry.assign(b, {2, 1}, 1);
  registry.run(b, 1);  // before anybody has asked
  EXPECT_EQ(registry.summary().busy_units, 4u);
  EXPECT_TRUE(registry.release(a, {1, 1}, 3, true));
  EXPECT_EQ(registry.summary().busy_units, 1u);
  registry.set_life(b, NodeLife::kLost);
  registry.remove("b");
  EXPECT_EQ(registry.summary().total_units, 4u);
}

}  // namespace
}  // namespace tierpilot
