#include "coordinator/core/decisions/shortlist.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/coordinator/core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class ShortlistTest : public CoreTest {
 protected:
  void join_nodes(int count) {
    for (int i = 0; i < count; ++i) links_.push_back(join(fmt::format("n{:03}", i)));
  }
  void load(const std::string& node, uint32_t units) {
    state_->registry.assign(*state_->registry.find(node), {1000 + ++loads_, 1}, units);
  }
  std::vector<std::string> names(const Task& task) {
    std::vector<std::string> found;
    for (const auto* node : shortlist(*state_, task, state_->catalog.data_bytes(task.spec)))
      found.push_back(node->facts.name);
    return found;
  }

  std::vector<std::shared_ptr<FakeNode>> links_;
  uint64_t loads_ = 0;
};

TEST_F(ShortlistTest, ASmallClusterIsLookedAtWhole) {
  state_->settings.considered_nodes = 4;
  join_nodes(4);
  load("n002", 4);  // full: shown all the same, as no candidate
  EXPECT_THAT(names({}), SizeIs(4));
}

TEST_F(ShortlistTest, OfALargeOneTheLeastLoadedAreTaken) {
  state_->settings.considered_nodes = 4;
  join_nodes(20);
  for (const int busy : {0, 1, 2, 3, 4, 5, 6, 7}) load(fmt::format("n{:03}", busy), 2);
  const auto found = names({});
  EXPECT_THAT(found, SizeIs(4));
  for (const int busy : {0, 1, 2, 3, 4, 5, 6, 7})
    EXPECT_THAT(found, Not(Contains(fmt::format("n{:03}", busy))));
}

TEST_F(ShortlistTest, OfEachSpeedAsManyAreTakenAndOfUnlikeNodesNotOnlyTheIdleOnes) {
  state_->settings.considered_nodes = 6;
  join_nodes(20);
  const auto has_run = [&](int node, double operations) {
    auto& registry = state_->registry;
    registry.ran(*registry.find(fmt::format("n{:03}", node)), operations, 1);
  };
  EXPECT_THAT(names({}), SizeIs(6));  // while all are alike
  for (int node = 0; node < 10; ++node) has_run(node, 1e9);
  for (int node = 10; node < 20; ++node) has_run(node, 4e9);
  for (int node = 10; node < 20; ++node) load(fmt::format("n{:03}", node), 1);
  const auto fast = [&](const auto& found) {
    return std::count_if(found.begin(), found.end(),
                         [](const auto& name) { return name >= "n010"; });
  };
  EXPECT_THAT(names({}), SizeIs(6));
  EXPECT_EQ(fast(names({})), 3);
  load("n010", 2);
  EXPECT_EQ(fast(names({})), 3);
  EXPECT_THAT(names({}), Not(Contains("n010")));
  // What is fully taken leaves its places to the others.
  for (int node = 10; node < 18; ++node) load(fmt::format("n{:03}", node), node == 10 ? 1 : 3);
  EXPECT_EQ(fast(names({})), 2);
  EXPECT_THAT(names({}), SizeIs(6));
  // A node that has become slow is one of the slow ones.
  for (int times = 0; times < 100; ++times) has_run(18, 1e9);
  EXPECT_EQ(fast(names({})), 1);
  for (int busy = 0; busy < 10; ++busy) load(fmt::format("n{:03}", busy), 2);
  EXPECT_THAT(names({}), Contains("n018"));
  EXPECT_THAT(names({}), SizeIs(6));
}

TEST_F(ShortlistTest, FollowsNodesThatChangeTheirSpeedAndComeAndGo) {
  state_->settings.considered_nodes = 2;
  join_nodes(6);
  auto& registry = state_->registry;
  const auto has_run = [&](const char* node, double operations) {
    for (int times = 0; times < 100; ++times) registry.ran(*registry.find(node), operations, 1);
  };
  EXPECT_THAT(names({}), SizeIs(2));
  for (const double speed : {1e9, 1e11, 2e9, 1e300, -1.0, double{NAN}, 4e9}) {
    has_run("n003", speed);  // alone in its class, until it leaves that
    EXPECT_THAT(names({}), Contains("n003")) << speed;
  }
  load("n003", 3);
  EXPECT_THAT(names({}), Contains("n003"));
  load("n003", 1);  // full: 2 units and a backlog of 2
  EXPECT_THAT(names({}), Not(Contains("n003")));
  EXPECT_THAT(names({}), SizeIs(2));
  registry.set_life(*registry.find("n003"), NodeLife::kLost);
  has_run("n003", 1e9);
  EXPECT_THAT(names({}), SizeIs(2));
  registry.set_life(*registry.find("n003"), NodeLife::kUp);
  EXPECT_THAT(names({}), Not(Contains("n003")));
  state_->settings.backlog_units = 3;
  EXPECT_THAT(names({}), Contains("n003"));
}

TEST_F(ShortlistTest, ThoseThatHoldTheDataAreAmongThemThoughTheyAreBusier) {
  state_->settings.considered_nodes = 4;
  join_nodes(20);
  add_dataset("genes", 1 << 20, "n013");
  load("n013", 2);
  Task task;
  task.spec.datasets = {{"genes", false}};
  EXPECT_THAT(names(task), Contains("n013"));
  EXPECT_THAT(names(task), SizeIs(4));
  load("n013", 2);  // now it has no room for more
  EXPECT_THAT(names(task), Not(Contains("n013")));
  EXPECT_THAT(names(task), SizeIs(4));
}

TEST_F(ShortlistTest, TheyStandByTheirSlotsWhateverTheirNames) {
  state_->settings.considered_nodes = 4;
  for (const char* name : {"z", "y", "x"}) links_.push_back(join(name));
  EXPECT_THAT(names({}), ::testing::ElementsAre("z", "y", "x"));
  for (const char* name : {"w", "v", "u"}) links_.push_back(join(name));
  add_dataset("genes", 1 << 20, "w");
  Task task;
  task.spec.datasets = {{"genes", false}};
  EXPECT_THAT(names(task), ::testing::ElementsAre("z", "y", "x", "w"));
}

TEST_F(ShortlistTest, ATaskForOneNodeSeesThatNodeOnly) {
  state_->settings.considered_nodes = 4;
  join_nodes(20);
  Task task;
  task.spec.node = "n017";
  EXPECT_THAT(names(task), ::testing::ElementsAre("n017"));
  task.spec.node = "elsewhere";
  EXPECT_THAT(names(task), IsEmpty());
}

TEST_F(ShortlistTest, ANodeThatIsLostIsNotOnIt) {
  join_nodes(3);
  state_->registry.set_life(*state_->registry.find("n001"), NodeLife::kLost);
  EXPECT_THAT(names({}), Not(Contains("n001")));
  EXPECT_EQ(state_->registry.summary().up_count(), 2u);
}

TEST_F(ShortlistTest, TheSumsFollowWhatIsAssignedRunAndReleased) {
  join_nodes(2);
  auto& registry = state_->registry;
  auto& node = *registry.find("n000");
  registry.assign(node, {1, 1}, 2);
  registry.run(node, 2);
  EXPECT_EQ(registry.summary().busy_units, 2u);
  EXPECT_EQ(registry.summary().total_units, 4u);
  registry.set_life(node, NodeLife::kLost);
  EXPECT_EQ(registry.summary().busy_units, 0u);
  EXPECT_TRUE(registry.release(node, {1, 1}, 2, true));
  EXPECT_FALSE(registry.release(node, {1, 1}, 2, true));
  registry.set_life(node, NodeLife::kUp);
  EXPECT_EQ(registry.summary().busy_units, 0u);
  EXPECT_EQ(node.assigned_units, 0u);
}

}  // namespace
}  // namespace tierpilot::testing
