// A task that writes more than any node could keep is not tried again.
#include "coordinator/core/outcomes/too_large.h"

#include <gmock/gmock.h>

#include <deque>

#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

class LargeWrites : public CoreTest {
 protected:
  void join_with(const std::string& name, uint64_t largest_write_bytes) {
    join(name);
    state_->registry.find(name)->facts.largest_write_bytes = largest_write_bytes;
  }
  // On node n, without room for `bytes`.
  const Task& fails_to_keep(uint64_t bytes, const std::string& only = {}) {
    auto writer = spec("w");
    writer.node = only;
    const auto attempt = assign(submit({writer})->first_task, "n");
    TaskExit failed;
    failed.how = TaskEnd::kDataFailed;
    failed.reason = "slow: no room";
    failed.node_fault = true;
    failed.no_room_bytes = bytes;
    EXPECT_TRUE(exit("n", attempt, failed));
    flush();
    const auto* left = state_->tasks.find(attempt.task);
    return left ? *left : ended_.emplace_back(*stored(attempt.task));
  }
  std::deque<Task> ended_;
};

TEST_F(LargeWrites, FailAtOnceWhereNoNodeCouldKeepThem) {
  join_with("n", 4096);
  join_with("larger", 1 << 20);
  const auto& task = fails_to_keep((1 << 20) + 1);
  EXPECT_EQ(task.state, TaskState::kFailed);
  EXPECT_EQ(task.attempt, 1U);
  for (const char* part : {"1,048,577 bytes", "1,048,576 on node 'larger'", "slow_budget"})
    EXPECT_THAT(task.reason, HasSubstr(part));
}

TEST_F(LargeWrites, AreTriedAgainWhereANodeCouldKeepThem) {
  join_with("n", 4096);
  join_with("larger", 1 << 20);
  EXPECT_EQ(fails_to_keep(1 << 20).state, TaskState::kQueued);
  EXPECT_EQ(fails_to_keep(1 << 20, "n").state, TaskState::kFailed) << "on no other";
  EXPECT_EQ(fails_to_keep(0).state, TaskState::kQueued) << "for another cause";
}

TEST_F(LargeWrites, AreTriedAgainWhereNotAllNodesHaveToldTheirs) {
  join_with("n", 4096);
  join_with("older", 0);
  EXPECT_EQ(fails_to_keep(1 << 20).state, TaskState::kQueued);
}

}  // namespace
}  // namespace tierpilot::testing
