// Checkpoints of jobs that have ended.
#include <gmock/gmock.h>

#include "tests/unit/coordinator/gangs/checkpoints_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(CheckpointsTest, OfAJobThatHasEndedTheLastStaysAndItsUserMayRemoveIt) {
  run_gang();
  for (uint64_t i : {10, 20, 30}) {
    taken("n", i);
    tells("m", i, true);
  }
  tick();
  std::optional<Status> removed;
  datasets_->remove(dataset(30), [&](Status status) { removed = status; });
  ASSERT_TRUE(removed);
  EXPECT_FALSE(*removed) << "its job may need it";
  end_gang();
  tick();
  EXPECT_THAT(kept(), ElementsAre(30));
  // What its nodes still hold of others goes as they tell of it.
  m->dropped.clear();
  checkpoints().found("m", dataset(5), replica());
  EXPECT_THAT(m->dropped, ElementsAre(std::pair(dataset(5), UINT64_MAX)));
  removed.reset();
  datasets_->remove(dataset(30), [&](Status status) { removed = status; });
  flush();
  ASSERT_TRUE(removed);
  EXPECT_TRUE(*removed);
}

// A power cut would undo the end, and the job would go on from nothing.
TEST_F(CheckpointsTest, OneIsNotDroppedBeforeTheEndOfItsJobIsOnDisk) {
  run_gang();
  ASSERT_TRUE(exit("n", rank(0), failure(1)));
  ASSERT_TRUE(exit("m", rank(1), failure(1)));
  ASSERT_EQ(state_->tasks.find(id)->state, TaskState::kQueued);
  flush();
  hold_disk();
  lifecycle_->cancel(id, nullptr);
  ASSERT_EQ(state_->tasks.find(id)->state, TaskState::kCancelled);
  tells("n", 10, true);
  checkpoints().found("n", dataset(10), replica());
  clock_.advance_ns(1'000'000'001);
  checkpoints().tick();
  EXPECT_THAT(n->dropped, IsEmpty());
  release_disk();
  // Its node tells of it only when it registers.
  tick();
  EXPECT_THAT(n->dropped, ElementsAre(std::pair(dataset(10), UINT64_MAX)));
  tick();
  EXPECT_EQ(n->dropped.size(), 1u) << "once";
  EXPECT_THAT(kept(), IsEmpty());
}

// As above: what the job was told is safe went for a later one, and that as its node was away.
TEST_F(CheckpointsTest, AsLongAsTheEndOfAJobIsNotOnDiskWhatIsSafeStays) {
  run_gang();
  const auto third = join("third");
  taken("n", 1);
  tells("m", 1, true);
  tick();
  ASSERT_EQ(told<CheckpointSafe>().size(), 1u);
  taken("n", 2);
  taken("n", 3);
  set_disk_full(true);
  for (const uint32_t number : {0, 1})
    EXPECT_FALSE(exit(number == 0 ? "n" : "m", rank(number), success()));
  ASSERT_TRUE(is_ended(state_->tasks.find(id)->state));
  tells("third", 2, true);
  tick();
  lifecycle_->give_up(*state_->registry.find("third"), "its lease has ended");
  tick();
  tick();
  EXPECT_THAT(kept(), ElementsAre(3, 2, 1));
}

}  // namespace
}  // namespace tierpilot::testing
