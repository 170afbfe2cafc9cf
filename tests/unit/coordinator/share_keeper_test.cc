#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/store/records.h"
#include "tests/unit/coordinator/share_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

TEST_F(ShareKeeperTest, SeveralTasksHavePartsOfOneUnit) {
  const auto a = accept(shared("a", 400)), b = accept(shared("b", 300)),
             c = accept(shared("c", 900));
  pump();
  EXPECT_EQ(task(a).state, TaskState::kRunning);
  EXPECT_EQ(task(b).state, TaskState::kRunning);
  EXPECT_EQ(task(c).state, TaskState::kQueued);
  EXPECT_THAT(task(c).reason, HasSubstr("share"));
  ASSERT_EQ(node_->assignments.size(), 2u);
  ASSERT_TRUE(node_->assignments[0].share);
  EXPECT_EQ(node_->assignments[0].share->milli, 400u);
  EXPECT_EQ(state_->registry.find("n1")->assigned_units, 0u) << "units of its own are free";
  const auto shown = keeper_->share_of(a);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->neighbours, std::vector{b});
  EXPECT_TRUE(exit("n1", {a, 1}, success()));
  pump();
  EXPECT_EQ(task(c).state, TaskState::kRunning) << "in what is left, as more than half of it is";
  EXPECT_LE(milli(b) + milli(c), 1000u);
}

TEST_F(ShareKeeperTest, RoomForSwappingIsCountedBesideShares) {
  state_->registry.find("n1")->facts.swap_room_bytes = 8 << 20;
  state_->registry.look_anew();
  auto one = shared("a", 300), other = shared("b", 300);
  one.swap_room_bytes = other.swap_room_bytes = 5 << 20;
  const auto a = accept(one), b = accept(other);
  pump();
  EXPECT_EQ(task(a).state, TaskState::kRunning);
  EXPECT_EQ(task(b).state, TaskState::kQueued);
  EXPECT_THAT(task(b).reason, HasSubstr("room for swapping"));
  EXPECT_EQ(state_->registry.find("n1")->assigned_swap_bytes, 5u << 20);
  EXPECT_TRUE(exit("n1", {a, 1}, success()));
  pump();
  EXPECT_EQ(task(b).state, TaskState::kRunning);
}

TEST_F(ShareKeeperTest, WhereOnlyNodesWithoutItsUnitsHaveRoomForSwappingThatIsTold) {
  state_->registry.find("n1")->facts.swap_room_bytes = 8 << 20;
  auto facts = CoreTest::facts("n2");
  facts.shared_units = {{"H200", 1, 1 << 30, "GPU-1"}};
  facts.swap_room_bytes = 8 << 20;
  ASSERT_TRUE(membership_->join(facts, std::make_shared<FakeNode>(), {}, {}));
  auto one = shared("a", 300), other = shared("b", 300);
  one.swap_room_bytes = other.swap_room_bytes = 5 << 20;
  accept(one);
  const auto b = accept(other);
  pump();
  EXPECT_THAT(task(b).reason, HasSubstr("no node with units for it has 5.0 MiB left"));
}

TEST_F(ShareKeeperTest, DoNotStandInTheQueueOfOtherTasks) {
  accept(shared("a", 400));
  EXPECT_TRUE(state_->tasks.queue().empty());
  EXPECT_EQ(state_->tasks.shared_queue().size(), 1u);
}

TEST_F(ShareKeeperTest, WhatRunsOfANameHaveShownOutlivesTheCoordinator) {
  keeper_->begin();
  const auto first = accept(shared("train", 0));
  pump();
  run_at_three_tenths(first);
  ASSERT_TRUE(exit("n1", {first, 1}, success()));
  restart_coordinator();
  node_ = join_sharing("n1", 1);
  const auto second = accept(shared("train", 0));
  pump();
  const auto shown = keeper_->share_of(second);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->forecast.by, "a run of its name");
  EXPECT_NEAR(shown->forecast.predicted.milli, 330, 60);
}

TEST_F(ShareKeeperTest, LatencySensitiveTasksGoFirst) {
  const auto best_effort = accept(shared("b", 800));
  auto sensitive = shared("a", 800);
  sensitive.share.latency_sensitive = true;
  const auto first = accept(sensitive);
  pump();
  EXPECT_EQ(task(first).state, TaskState::kRunning);
  EXPECT_EQ(task(best_effort).state, TaskState::kQueued);
}

// Two hundred and more that wait for GPUs hold nobody up that waits for cores.
TEST_F(ShareKeeperTest, ThoseThatWaitForUnitsOfAnotherEngineAreNotInTheWay) {
  for (int i = 0; i < 300; ++i) {
    auto gpu = shared("g", 1000);
    gpu.share.engine = Engine::kGpu;
    gpu.share.latency_sensitive = true;
    accept(gpu);
  }
  const auto id = accept(shared("a", 300));
  pump();
  EXPECT_EQ(task(id).state, TaskState::kRunning) << task(id).reason;
}

TEST_F(ShareKeeperTest, WhoHasAPromiseGoesBeforeWhoHasNone) {
  auto plain = shared("a", 1000, 5);
  plain.share.latency_sensitive = true;
  const auto first = accept(plain);
  pump();
  const auto waits = accept(plain);
  const auto second = accept(promised("p", 1000, 1, 3600));
  EXPECT_TRUE(exit("n1", {first, 1}, success()));
  pump();
  EXPECT_EQ(task(second).state, TaskState::kRunning) << task(second).reason;
  EXPECT_EQ(task(waits).state, TaskState::kQueued);
  EXPECT_THAT(task(waits).reason, HasSubstr("1000 thousandths"));
}

TEST_F(ShareKeeperTest, APromiseThatCannotBeKeptIsNotMade) {
  const auto refused = submit({promised("late", 1000, 100, 60)});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("'late'"));
  EXPECT_THAT(refused.error().message, HasSubstr("ask for"));
  EXPECT_TRUE(submit({promised("late", 1000, 100, 200)}));
  const auto behind = submit({promised("another", 1000, 100, 200)});
  EXPECT_FALSE(behind) << "the one before it has the unit until then";
  const auto unknown = submit({promised("unknown", 500, 0, 200)});
  ASSERT_FALSE(unknown);
  EXPECT_THAT(unknown.error().message, HasSubstr("not known"));
}

TEST_F(ShareKeeperTest, APromiseShrinksBestEffortTasksFirst) {
  const auto best_effort = accept(shared("b", 1000));
  pump();
  const auto sensitive = accept(promised("a", 900, 60, 120));
  pump();
  EXPECT_EQ(task(sensitive).state, TaskState::kRunning);
  EXPECT_EQ(task(best_effort).state, TaskState::kRunning);
  ASSERT_FALSE(node_->shares.empty());
  EXPECT_EQ(node_->shares[0].first.task, best_effort);
  EXPECT_LE(milli(sensitive) + milli(best_effort), 1000u);
}

TEST_F(ShareKeeperTest, AShareOfAGpuIsOfOneThatIsSound) {
  auto gpu = std::make_shared<FakeNode>();
  auto facts = CoreTest::facts("g1");
  facts.shared_units = {
      {"cpu", 1, 1 << 30}, {"gpu/X", 1, 1 << 30, "GPU-a"}, {"gpu/X", 1, 1 << 30, "GPU-b"}};
  ASSERT_TRUE(membership_->join(facts, gpu, {}, {}));
  auto spec = shared("a", 1000);
  spec.share.engine = Engine::kGpu;
  state_->units.say_unhealthy("g1", {{"g1/gpu/GPU-a", "MPS hangs"}});
  const auto first = accept(spec), second = accept(spec), core = accept(shared("c", 300));
  pump();
  ASSERT_TRUE(task(first).share);
  EXPECT_EQ(task(first).share->gpu, "GPU-b");
  EXPECT_EQ(task(first).node, "g1");
  EXPECT_EQ(task(second).state, TaskState::kQueued);
  ASSERT_TRUE(task(core).share);
  EXPECT_EQ(task(core).share->gpu, "") << "cores are asked for";
  EXPECT_EQ(keeper_->sharers_of("g1/gpu/GPU-b"), std::vector<uint64_t>{first});
  state_->units.say_unhealthy("g1", {});
  pump();
  EXPECT_EQ(task(second).share->gpu, "GPU-a");
}

TEST_F(ShareKeeperTest, WithoutASharedGpuItWaitsAndSaysSo) {
  auto spec = shared("a", 300);
  spec.share.engine = Engine::kGpu;
  const auto id = accept(spec);
  pump();
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_THAT(task(id).reason, HasSubstr("GPUs that are shared"));
}

TEST_F(ShareKeeperTest, WhatItHasIsTakenUpAfterARestart) {
  const auto id = accept(shared("a", 400));
  pump();
  flush();
  keeper_.reset();
  checkpoints_.reset();
  restart();
  make_keeper("share");
  ASSERT_TRUE(task(id).share);
  EXPECT_EQ(milli(id), 400u);
  keeper_->begin();
  node_ = join_sharing("n1", 1, {{id, 1}});
  const auto other = accept(shared("b", 700));
  pump();
  EXPECT_EQ(task(other).share->milli, 600u) << "what is left";
}

TEST_F(ShareKeeperTest, SharesFollowWhatIsMeasured) {
  const auto a = accept(shared("a", 500)), b = accept(shared("b", 500));
  pump();
  // The first waits for its share nearly always, the second uses a tenth of the unit.
  for (int s = 1; s <= 20; ++s) {
    JobPoint hungry, idle;
    hungry.attempt = idle.attempt = 1;
    hungry.cpu_ns = static_cast<uint64_t>(s) * 500'000'000;
    hungry.waited_ns = static_cast<uint64_t>(s) * 500'000'000;
    idle.cpu_ns = static_cast<uint64_t>(s) * 100'000'000;
    pass(1);
    keeper_->reported(task(a), hungry);
    keeper_->reported(task(b), idle);
  }
  pass(3);
  EXPECT_GT(milli(a), 800u);
  EXPECT_LT(milli(b), 200u);
  EXPECT_GE(milli(b), 100u);
}

// The first does two fifths of what it did alone: the next one of the other's name waits for
// another unit. Who tells no iterations is not said to be measured.
TEST_F(ShareKeeperTest, WhoSlowsOthersTooMuchIsKeptApart) {
  const auto first = accept(shared("wild", 300));
  pump();
  const auto report = [&](uint64_t id, int second, double iterations) {
    JobPoint point{.attempt = 1, .iteration = static_cast<uint64_t>(iterations)};
    point.cpu_ns = static_cast<uint64_t>(second) * 300'000'000;
    keeper_->reported(task(id), point);
  };
  double done = 0;
  int second = 0;
  const auto run = [&](int seconds, double pace) {
    for (int s = 0; s < seconds; ++s) {
      pass(1);
      report(first, ++second, done += pace);
    }
  };
  run(15, 30);
  const auto neighbour = accept(shared("tame", 300));
  pump();
  ASSERT_EQ(task(neighbour).state, TaskState::kRunning) << "nothing is known against it";
  run(15, 12);
  const auto shown = keeper_->share_of(first);
  ASSERT_EQ(shown->slow_downs.size(), 1u);
  EXPECT_EQ(shown->slow_downs[0].neighbour, neighbour);
  EXPECT_LT(shown->slow_downs[0].kept.part(), 0.6);
  EXPECT_THAT(shown->slow_downs[0].by, HasSubstr("this pair of names, measured once"));
  EXPECT_TRUE(shown->tells_pace);
  EXPECT_FALSE(keeper_->share_of(neighbour)->tells_pace);
  ASSERT_TRUE(exit("n1", {neighbour, 1}, success()));
  run(10, 30);
  const auto again = accept(shared("tame", 300));
  pump();
  EXPECT_EQ(task(again).state, TaskState::kQueued);
  EXPECT_THAT(task(again).reason, HasSubstr("slow"));
  const auto other = join_sharing("n2", 1);
  pump();
  EXPECT_EQ(task(again).node, "n2");
}

TEST_F(ShareKeeperTest, WhatNeighboursTookOutlivesTheCoordinator) {
  keeper_->begin();
  const auto first = accept(shared("wild", 300));
  pump();
  double done = 0;
  int second = 0;
  const auto run = [&](int seconds, double pace) {
    for (int s = 0; s < seconds; ++s) {
      pass(1);
      JobPoint point{.attempt = 1, .iteration = static_cast<uint64_t>(done += pace)};
      point.cpu_ns = static_cast<uint64_t>(++second) * 300'000'000;
      keeper_->reported(task(first), point);
    }
  };
  run(15, 30);
  const auto neighbour = accept(shared("tame", 300));
  pump();
  run(15, 12);
  restart_coordinator();
  node_ = join_sharing("n1", 1, {{first, 1}, {neighbour, 1}});
  const auto shown = keeper_->share_of(first);
  ASSERT_TRUE(shown);
  ASSERT_EQ(shown->slow_downs.size(), 1u);
  EXPECT_LT(shown->slow_downs[0].kept.part(), 0.6);
  EXPECT_THAT(shown->slow_downs[0].by, HasSubstr("this pair of names, measured once"));
}

// Half of a run is no run.
TEST_F(ShareKeeperTest, WhatWasNotSeenFromItsStartTeachesNothing) {
  keeper_->begin();
  const auto first = accept(shared("train", 0));
  pump();
  const auto run = [&](int from, int to) {
    for (int s = from; s <= to; ++s) {
      pass(1);
      JobPoint point{.attempt = 1, .iteration = static_cast<uint64_t>(s), .iterations = 40};
      keeper_->reported(task(first), point);
      keeper_->reported(task(first),
                        {.attempt = 1, .cpu_ns = static_cast<uint64_t>(s) * 300'000'000});
    }
  };
  run(1, 20);
  restart_coordinator();
  node_ = join_sharing("n1", 1, {{first, 1}});
  run(21, 40);
  ASSERT_TRUE(exit("n1", {first, 1}, success()));
  flush();
  EXPECT_TRUE(records::past_runs(store_->reader())->empty());
}

TEST_F(ShareKeeperTest, AJobIsForetoldForItsUnitAgainWhenTheNodeIsBack) {
  keeper_->begin();
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  const auto wide = join_sharing("n2", 1, {}, 4);
  const auto first = accept(shared("train", 0));
  pump();
  for (int s = 1; s <= 20; ++s) {
    pass(1);
    keeper_->reported(task(first),
                      {.attempt = 1, .cpu_ns = static_cast<uint64_t>(s) * 1'000'000'000});
  }
  ASSERT_TRUE(exit("n2", {first, 1}, success()));
  const auto second = accept(shared("train", 0));
  pump();
  EXPECT_NEAR(keeper_->share_of(second)->forecast.predicted.milli, 275, 10) << "a core of four";
  restart_coordinator();
  join_sharing("n2", 1, {{second, 1}}, 4);
  pass(3);
  EXPECT_NEAR(keeper_->share_of(second)->forecast.predicted.milli, 275, 10);
}

TEST_F(ShareKeeperTest, ANodeThatIsClosedGetsNone) {
  state_->registry.set_order("n1", {NodeOrder::Kind::kCordoned});
  const auto id = accept(shared("a", 400));
  pump();
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_THAT(task(id).reason, HasSubstr("none of those that are up takes tasks"));
}

// Of which there may be any number.
TEST_F(ShareKeeperTest, TasksForANodeThatIsAwayHoldUpNobody) {
  join_sharing("n2", 1);
  state_->registry.find("n2")->link.reset();
  auto bound = shared("bound", 400);
  bound.node = "n2";
  std::vector<TaskSpec> many(300, bound);
  for (auto& each : many) each.name.clear();
  const auto submitted = submit(many);
  ASSERT_TRUE(submitted) << submitted.error().message;
  const auto other = accept(shared("other", 400));
  pump();
  EXPECT_EQ(task(other).state, TaskState::kRunning) << task(other).reason;
}

// What it used was more than was foretold, which nobody enforces.
TEST_F(ShareKeeperTest, ARunThatUsedMoreMemoryThanAUnitHasKeepsNoLaterOneAway) {
  const auto first = accept(shared("python3", 0));
  pump();
  run_at_three_tenths(first);
  auto large = success();
  large.max_resident_bytes = uint64_t{1} << 40;
  ASSERT_TRUE(exit("n1", {first, 1}, large));
  const auto second = accept(shared("python3", 0));
  pump();
  ASSERT_EQ(task(second).state, TaskState::kRunning) << task(second).reason;
  EXPECT_EQ(keeper_->share_of(second)->forecast.by, "a run of its name");
  EXPECT_LE(task(second).share->memory_bytes, uint64_t{1} << 30);
}

TEST_F(ShareKeeperTest, WhyANodeThatATaskIsBoundToTakesNoneIsTold) {
  auto spec = shared("a", 400);
  spec.node = "n1";
  state_->registry.set_order("n1", {.kind = NodeOrder::Kind::kCordoned, .who = "ada"});
  const auto id = accept(spec);
  pump();
  EXPECT_THAT(task(id).reason, HasSubstr("shared on node 'n1': it is closed: cordoned by ada"));
  join("n2");
  spec.node = "n2";
  const auto other = accept(spec);
  pump();
  EXPECT_THAT(task(other).reason, HasSubstr("node 'n2': it shares none"));
}

TEST_F(ShareKeeperTest, WhatARefusalOfTheNodeTookIsTriedElsewhere) {
  node_->refusal = Error{ErrorCode::kUnavailable, "it is full"};
  const auto other = join_sharing("n2", 1);
  const auto id = accept(shared("a", 400));
  for (int i = 0; i < 4 && task(id).state != TaskState::kRunning; ++i) pump();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
  EXPECT_EQ(task(id).node, "n2");
}

}  // namespace
}  // namespace tierpilot::testing
