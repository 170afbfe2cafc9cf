#include "coordinator/core/shortlist.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "coordinator/core/view.h"
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
  EXPECT_EQ(state_->registry.up_count(), 2u);
}

TEST_F(ShortlistTest, TheSumsFollowWhatIsAssignedRunAndReleased) {
  join_nodes(2);
  auto& registry = state_->registry;
  auto& node = *registry.find("n000");
  registry.assign(node, {1, 1}, 2);
  registry.run(node, 2);
  EXPECT_EQ(registry.busy_units(), 2u);
  EXPECT_EQ(registry.total_units(), 4u);
  registry.set_life(node, NodeLife::kLost);
  EXPECT_EQ(registry.busy_units(), 0u);
  EXPECT_TRUE(registry.release(node, {1, 1}, 2, true));
  EXPECT_FALSE(registry.release(node, {1, 1}, 2, true));
  registry.set_life(node, NodeLife::kUp);
  EXPECT_EQ(registry.busy_units(), 0u);
  EXPECT_EQ(node.assigned_units, 0u);
}

}  // namespace
}  // namespace tierpilot::testing
