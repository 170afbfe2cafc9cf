#include "policies/placement/published/experience.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/unit/policies/experiences.h"

namespace tierpilot {
namespace {

using testing_experiences::experience;

TEST(Replay, DropsDuplicates) {
  ReplayBuffer<Observation> replay(8);
  EXPECT_TRUE(replay.add(experience(1)));
  EXPECT_FALSE(replay.add(experience(1))) << "equal content, other pointers";
  PublishedExperience other_action = experience(1);
  other_action.action = 1;
  EXPECT_TRUE(replay.add(other_action));
  EXPECT_EQ(replay.size(), 2u);
}

TEST(Replay, KeepsTheNewestAndForgetsTheOldest) {
  ReplayBuffer<Observation> replay(3);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(replay.add(experience(i)));
  ASSERT_EQ(replay.size(), 3u);
  EXPECT_DOUBLE_EQ(replay.entries().front().reward, 2);
  EXPECT_TRUE(replay.add(experience(0))) << "what was forgotten is no duplicate";
}

TEST(Replay, DrawsDifferentEntries) {
  ReplayBuffer<Observation> replay(64);
  for (int i = 0; i < 64; ++i) replay.add(experience(i));
  std::mt19937_64 generator(1);
  std::set<double> rewards;
  for (const PublishedExperience& drawn : replay.draw(32, generator, false))
    rewards.insert(drawn.reward);
  EXPECT_EQ(rewards.size(), 32u);
  EXPECT_EQ(replay.size(), 64u);
}

TEST(Replay, DrawnEntriesLeaveWhenAsked) {
  ReplayBuffer<Observation> replay(64);
  for (int i = 0; i < 64; ++i) replay.add(experience(i));
  std::mt19937_64 generator(1);
  std::set<double> rewards;
  for (int batch = 0; batch < 8; ++batch)
    for (const PublishedExperience& drawn : replay.draw(8, generator, true))
      rewards.insert(drawn.reward);
  EXPECT_EQ(rewards.size(), 64u) << "eight batches of an eighth use everything once";
  EXPECT_EQ(replay.size(), 0u);
  EXPECT_TRUE(replay.draw(8, generator, true).empty());
  EXPECT_TRUE(replay.add(experience(3)));
}

}  // namespace
}  // namespace tierpilot
