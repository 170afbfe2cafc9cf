// What gang policies are shown of the cluster: all of it, and what was measured of it.
#include "coordinator/core/gangs/gang_view.h"

#include <gmock/gmock.h>

#include "coordinator/core/gangs/checkpoint_choice.h"
#include "coordinator/core/gangs/checkpoints.h"
#include "gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int64_t kOneHour_ms = 3'600'000;

class GangViews : public Gangs {
 protected:
  GangView view(uint64_t id) {
    return gang_view(*state_, task(id), newest_checkpoint(*state_, id));
  }
  // It runs for so long, has a checkpoint of this iteration, and is killed.
  void run_and_fail(uint64_t id, int64_t ms, uint64_t iteration) {
    start_all(id);
    pass(ms);
    ReplicaState kept{.version = 1, .bytes = 1 << 20};
    kept.in_slow = kept.home = true;
    kept.digest = {0, 9};
    const auto name = to_string(CheckpointName{id, task(id).attempt, iteration});
    membership_->replica_changed(rank(id, 0).node, name, kept);
    checkpoints().found(rank(id, 0).node, name, kept);
    flush();
    end(id, 0, killed(9));
    end_cancelled(id);
  }
  // Leases go on meanwhile.
  void pass(int64_t ms) {
    Gangs::pass(ms);
    for (auto& [name, ticket] : tickets_) EXPECT_TRUE(membership_->renew(ticket));
  }
  Checkpoints& checkpoints() {
    if (!checkpoints_) checkpoints_ = std::make_unique<Checkpoints>(*state_, *datasets_);
    return *checkpoints_;
  }
  void tell(uint64_t id, uint64_t iteration, uint64_t iterations) {
    JobPoint point;
    point.iteration = iteration;
    point.iterations = iterations;
    gangs_->reported(rank(id, 0), point);
  }
  // A megabyte a second each; of their own tiers nothing is measured.
  void measure_links() {
    for (auto& [name, node] : state_->registry.all()) {
      node.fetches.add(1e6, 1);
      node.fast_free_bytes = 64 << 20;
    }
  }
  std::unique_ptr<Checkpoints> checkpoints_;
};

TEST_F(GangViews, UnitsThatOthersHaveAreThereAndNotFree) {
  join("a");
  join("b");
  join("c");
  const auto busy = submit_gang(1);
  place();
  ASSERT_EQ(task(busy).state, TaskState::kAssigned);
  start_all(busy);
  state_->units.drain(cpu_unit_id("b", 0), "loud");
  const auto id = submit_gang(2);
  const auto seen = view(id);
  ASSERT_THAT(seen.state.free, SizeIs(6));
  EXPECT_THAT(seen.state.node, ElementsAre(0, 0, 1, 1, 2, 2));
  EXPECT_THAT(seen.numbers, ElementsAre(0, 1, 0, 1, 0, 1));
  EXPECT_EQ(std::count(seen.state.free.begin(), seen.state.free.end(), true), 4);
  const auto taken = rank(busy, 0);
  for (size_t unit = 0; unit < 6; ++unit) {
    const auto name =
        cpu_unit_id(seen.nodes[seen.state.node[unit]].record->facts.name, seen.numbers[unit]);
    const bool is_free =
        name != "b/cpu/0" && name != cpu_unit_id(taken.node, taken.rank->cpu_units[0]);
    EXPECT_EQ(seen.state.free[unit], is_free) << name;
  }
  EXPECT_EQ(seen.state.units_per_node, 2u);
}

TEST_F(GangViews, OfTasksWhoseUnitsNobodyKnowsTheUnsoundestCountAsTaken) {
  settings_.gang_policy = "first-fit";
  again();
  join("a");
  const auto single = submit({spec()})->first_task;
  place();
  ASSERT_EQ(task(single).state, TaskState::kAssigned);
  state_->units.failed({clock_.wall_ms(), "a/cpu/0", "signalled 9", 1});
  EXPECT_THAT(view(submit_gang(1)).state.free, ElementsAre(false, true));
}

TEST_F(GangViews, UnitsForWhichThereIsNoMemoryAreNotFree) {
  join("a");
  auto large = gang(1);
  large.memory_bytes = 700 << 20;  // of a GiB
  EXPECT_THAT(view(submit({large})->first_task).state.free, ElementsAre(true, false));
}

TEST_F(GangViews, AClosedNodeIsSeenAndHasNothingFree) {
  join("a");
  state_->registry.set_order("a", {.kind = NodeOrder::Kind::kDrained});
  const auto seen = view(submit_gang(1));
  EXPECT_THAT(seen.state.free, ElementsAre(false, false));
}

TEST_F(GangViews, HowSureARateIsComesWithIt) {
  join("a");
  for (int i = 0; i < 3; ++i) state_->units.failed({clock_.wall_ms(), "a/cpu/1", "signalled 9", 1});
  const auto seen = view(submit_gang(1)).state;
  ASSERT_THAT(seen.rate_shape, SizeIs(2));
  EXPECT_GT(seen.rate_shape[1], seen.rate_shape[0]);
  EXPECT_GT(seen.per_h[1], seen.per_h[0]);
}

TEST_F(GangViews, WhatOtherGangsInTheQueueWantIsTold) {
  join("a");
  join("b");
  const auto id = submit_gang(1);
  EXPECT_EQ(view(id).state.waiting_units, 0);
  auto wide = gang(3);
  wide.units = 1;
  const auto other = submit({wide})->first_task;
  submit({spec()});  // no gang
  EXPECT_EQ(view(id).state.waiting_units, 3);
  EXPECT_EQ(view(other).state.waiting_units, 1);
  place();
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
  EXPECT_EQ(view(other).state.waiting_units, 0);
}

TEST_F(GangViews, CostsAreTheSettingsUntilSomethingWasMeasured) {
  settings_.gang_costs = {.checkpoint_h = 0.5, .restart_h = 0.25, .repair_h = 3};
  again();
  join("a");
  const auto id = submit_gang(1, 5);
  auto costs = view(id).state.costs;
  EXPECT_EQ(costs.checkpoint_h, 0.5);
  EXPECT_EQ(costs.restart_h, 0.25);
  EXPECT_EQ(costs.repair_h, 3);
  place();
  start_all(id);
  constexpr uint64_t kStall_ns = 36'000'000'000;  // a hundredth of an hour
  checkpoints().measured(rank(id, 0).node, attempt(id, 0), to_string({id, 1, 10}), {kStall_ns, 0});
  end(id, 0, killed(9));
  end_cancelled(id);
  place();
  pass(180'000);  // until the ranks run again
  start_all(id);
  pass(180'000);  // until the job has loaded what it needs
  tell(id, 11, 0);
  costs = view(id).state.costs;
  EXPECT_DOUBLE_EQ(costs.checkpoint_h, 0.01);
  EXPECT_DOUBLE_EQ(costs.restart_h, 0.1);
  EXPECT_DOUBLE_EQ(view(submit_gang(1)).state.costs.checkpoint_h, 0.01) << "others are taken alike";
}

TEST_F(GangViews, WhatIsLeftIsReckonedFromTheCheckpointThatItBeginsFrom) {
  settings_.gang_estimate_h = 7;
  again();
  join("a");
  EXPECT_EQ(view(submit_gang(1)).job.work_h, 7) << "by the settings";
  auto told = gang(1, 9);
  told.gang.estimate_ms = 10 * kOneHour_ms;
  const auto id = submit({told})->first_task;
  EXPECT_EQ(view(id).job.work_h, 10);
  place();
  place();
  ASSERT_EQ(task(id).state, TaskState::kAssigned);
  run_and_fail(id, 2 * kOneHour_ms, 40);
  EXPECT_NEAR(view(id).job.work_h, 8, 1e-6) << "by the time that it ran until then";
  place();
  start_all(id);
  tell(id, 41, 200);
  EXPECT_NEAR(view(id).job.work_h, 8, 1e-6) << "by iterations: 40 of 200 are done";
  run_and_fail(id, kOneHour_ms, 150);
  EXPECT_NEAR(view(id).job.work_h, 2.5, 1e-6);
}

TEST_F(GangViews, AJobThatRunsLongerThanWasThoughtIsNotTakenForDone) {
  join("a");
  auto told = gang(1, 9);
  told.gang.estimate_ms = kOneHour_ms;
  const auto id = submit({told})->first_task;
  place();
  run_and_fail(id, 5 * kOneHour_ms, 40);
  EXPECT_NEAR(view(id).job.work_h, 0.1, 1e-6);
}

TEST_F(GangViews, WhereTheDataIsFarItTakesLongToBeginThere) {
  join("a");
  join("b");
  measure_links();
  EXPECT_THAT(view(submit_gang(1)).state.fetch_h, IsEmpty());
  add_dataset("d", 8 << 20, "a");
  ReplicaState held{.version = 1, .bytes = 8 << 20};
  held.in_fast = true;
  state_->catalog.find("d")->replicas["a"] = held;
  auto reader = gang(1);
  reader.datasets = {{"d", false}};
  const auto seen = view(submit({reader})->first_task).state;
  EXPECT_THAT(seen.fetch_h, ElementsAre(DoubleEq(0), DoubleEq(0), Gt(0), Gt(0)));
  EXPECT_NEAR(seen.fetch_h[2] * 3600, (8 << 20) / 1e6, 1e-6);
}

TEST_F(GangViews, ACheckpointCountsAsDataOfTheNextTry) {
  join("a");
  join("b");
  measure_links();
  const auto id = submit_gang(1, 9);
  place();
  run_and_fail(id, kOneHour_ms, 4);
  const auto at = rank(id, 0).node;
  const auto seen = view(id);
  ASSERT_THAT(seen.state.fetch_h, SizeIs(4));
  for (size_t unit = 0; unit < 4; ++unit) {
    const bool is_there = seen.nodes[seen.state.node[unit]].record->facts.name == at;
    EXPECT_NEAR(seen.state.fetch_h[unit] * 3600, (1 << 20) / (is_there ? 1e9 : 1e6), 1e-6);
  }
}

}  // namespace
}  // namespace tierpilot::testing
