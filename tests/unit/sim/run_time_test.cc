// How long a task's own work takes, and what its checkpoints keep.
#include "policies/sim/run_time.h"

#include <gtest/gtest.h>

namespace tierpilot::sim {
namespace {

NodeGroup fast_node() {
  NodeGroup group;
  group.operations_per_s = 2e9;
  group.launch_s = 0.5;
  return group;
}

const Checkpoints kEveryTwoSeconds{.interval_s = 2, .cost_s = 0.25, .restart_s = 1};

TEST(RunTime, IsLaunchAndWork) {
  EXPECT_DOUBLE_EQ(run_s(fast_node(), {}, 6e9, false), 3.5);
  EXPECT_DOUBLE_EQ(run_s(fast_node(), {}, -1, false), 0.5) << "all of it was done before";
}

TEST(RunTime, CheckpointsAndRestartsCost) {
  EXPECT_DOUBLE_EQ(run_s(fast_node(), kEveryTwoSeconds, 10e9, false), 0.5 + 5 + 2 * 0.25);
  EXPECT_DOUBLE_EQ(run_s(fast_node(), kEveryTwoSeconds, 10e9, true), 1 + 0.5 + 5 + 2 * 0.25);
}

TEST(RunTime, OnlyWholeIntervalsAreKept) {
  EXPECT_EQ(kept_operations(fast_node(), kEveryTwoSeconds, 0.5 + 2.2, false), 0);
  EXPECT_DOUBLE_EQ(kept_operations(fast_node(), kEveryTwoSeconds, 0.5 + 2.3, false), 4e9);
  EXPECT_DOUBLE_EQ(kept_operations(fast_node(), kEveryTwoSeconds, 0.5 + 4.6, false), 8e9);
  EXPECT_DOUBLE_EQ(kept_operations(fast_node(), kEveryTwoSeconds, 0.5 + 4.6, true), 4e9);
}

TEST(RunTime, NothingIsKeptWithoutCheckpointsOrBeforeTheLaunch) {
  EXPECT_EQ(kept_operations(fast_node(), {}, 100, false), 0);
  EXPECT_EQ(kept_operations(fast_node(), kEveryTwoSeconds, 0.1, true), 0);
}

}  // namespace
}  // namespace tierpilot::sim
