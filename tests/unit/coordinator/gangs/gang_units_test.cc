// Which units gangs get: by their failures, their engine and who waits for them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "coordinator/core/gangs/gang_capacity.h"
#include "coordinator/store/records.h"
#include "gang_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST_F(Gangs, KeepAwayFromUnitsThatFailAndAreForgivenWhatIsTheirOwnFault) {
  std::map<std::string, std::shared_ptr<FakeNode>> nodes{{"a", join("a")}, {"b", join("b")}};
  const auto id = submit_gang(1, 5);
  // Starts on the unit that it was to have first, and is killed. Gives that unit.
  const auto killed_on_unit = [&] {
    place();
    const auto& node = rank(id, 0).node;
    const uint32_t number = nodes[node]->assignments.back().rank->place.cpu_units.front();
    const auto unit = cpu_unit_id(node, number);
    lifecycle_->started(node, attempt(id, 0), 1000, {number});
    flush();
    clock_.advance_ns(60'000'000'000);
    end(id, 0, killed(9));
    flush();
    return unit;
  };
  const auto first = killed_on_unit();
  EXPECT_EQ(state_->units.failures(first), 1u);
  const auto rates = state_->units.rates(clock_.wall_ms());
  for (const auto& [unit, rate] : rates) {
    EXPECT_LE(rate.low, rate.mean);
    EXPECT_GE(rate.high, rate.mean);
    if (unit != first) {
      EXPECT_LT(rate.mean, rates.at(first).mean) << unit;
    }
  }
  const auto second = killed_on_unit();
  EXPECT_NE(second, first);
  EXPECT_EQ(stored(id)->state, TaskState::kFailed);
  EXPECT_THAT(stored(id)->reason, HasSubstr("the program's own fault"));
  EXPECT_EQ(state_->units.failures(first) + state_->units.failures(second), 0u);
}

TEST_F(Gangs, AUnitThatFailsTooOftenIsQuarantinedUntilSomebodySaysOtherwise) {
  settings_.quarantine_failures = 3;
  settings_.gang_policy = "first-fit";  // which comes back to it
  again();
  join("a");
  join("b");
  const auto id = submit_gang(2, 100);
  const auto bad = cpu_unit_id("a", 0);
  for (int failed = 1; failed <= 3; ++failed) {
    place();
    start_all(id);
    ASSERT_EQ(rank(id, 0).node, "a");
    EXPECT_EQ(state_->units.drained_because(bad), "") << failed;
    end(id, 0, killed(SIGKILL));
    end_cancelled(id);
  }
  EXPECT_TRUE(state_->units.is_quarantined(bad));
  EXPECT_THAT(state_->units.drained_because(bad), HasSubstr("3 failures (3 x signalled 9)"));
  again();
  EXPECT_TRUE(state_->units.is_quarantined(bad)) << "it outlives the coordinator";
  state_->units.resume(bad);
  EXPECT_FALSE(state_->units.is_quarantined(bad));
}

NodeFacts two_units(const std::string& name) {
  NodeFacts facts;
  facts.name = name;
  facts.units = 2;
  return facts;
}

TEST(Quarantine, TakesNeitherAQuarterOfAllUnitsNorForWhatIsLongAgo) {
  UnitBook units;
  for (int node = 0; node < 4; ++node)
    units.add(two_units(fmt::format("n{}", node)), 0);  // two units each
  const auto fails = [&](const std::string& unit, int64_t at_ms) {
    units.failed({at_ms, unit, "node lost", 1});
  };
  const std::string a = "n0/cpu/0", b = "n1/cpu/0", c = "n2/cpu/0";
  for (int64_t at_ms : {100, 200}) fails(a, at_ms);
  EXPECT_EQ(units.quarantine_reason(a, 3, 0), "");
  EXPECT_EQ(units.quarantine_reason(a, 2, 150), "") << "one of them is too long ago";
  EXPECT_EQ(units.quarantine_reason(a, 0, 0), "") << "off";
  EXPECT_EQ(units.quarantine_reason(a, 2, 0), "by rule: 2 failures (2 x node lost)");
  for (const auto& unit : {a, b}) {
    fails(unit, 300);
    fails(unit, 301);
    units.drain(unit, units.quarantine_reason(unit, 2, 0));
    EXPECT_TRUE(units.is_quarantined(unit));
  }
  EXPECT_EQ(units.quarantine_reason(a, 2, 0), "") << "it is out already";
  fails(c, 300);
  fails(c, 301);
  EXPECT_EQ(units.quarantine_reason(c, 2, 0), "") << "two of eight are out";
  units.resume(a);
  units.drain(a, "a fan is loud");
  EXPECT_NE(units.quarantine_reason(c, 2, 0), "") << "what somebody drained does not count";
}

TEST(UnitRates, AFailureCountsAtOnce) {
  UnitBook units;
  units.add(two_units("n"), 0);
  constexpr int64_t kHour_ms = 3'600'000;
  units.failed({kHour_ms, "n/cpu/0", "signalled 9", 1});
  // One in an hour of two units.
  EXPECT_GT(units.rates(kHour_ms).at("n/cpu/0").mean, 0.1);
  EXPECT_LT(units.rates(kHour_ms).at("n/cpu/0").mean, 10);
}

TEST_F(Gangs, ThatNoClusterLikeThisCanRunAreRefused) {
  join("a");
  const auto refused = submit({gang(3)});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("could run 2 of its 3 ranks"));
  auto uneven = gang(2);
  uneven.gang.ranks_per_node_min = 4;
  EXPECT_FALSE(submit({uneven}));
  auto gpu = gang(1);
  gpu.gang.engine = Engine::kGpu;
  gpu.gang.gpus_per_rank = 1;
  EXPECT_FALSE(submit({gpu})) << "no node has one";
}

TEST_F(Gangs, GetTheirOwnGpusAndNobodyElses) {
  auto with_gpus = facts("g");
  with_gpus.gpus = {"GPU-1", "GPU-2"};
  auto link = std::make_shared<FakeNode>();
  ASSERT_TRUE(membership_->join(with_gpus, link, {}, {}));
  auto one = gang(1);
  one.gang.engine = Engine::kGpu;
  one.gang.gpus_per_rank = 1;
  one.name = "first";
  auto two = one;
  two.name = "second";
  submit({one, two});
  place();
  place();
  ASSERT_THAT(link->assignments, SizeIs(2));
  std::set<std::string> gpus;
  for (const auto& assignment : link->assignments)
    for (const auto& gpu : assignment.rank->place.gpus) gpus.insert(gpu);
  EXPECT_THAT(gpus, ElementsAre("GPU-1", "GPU-2"));
}

TEST_F(Gangs, DrainedUnitsAreNotUsed) {
  auto a = join("a");
  state_->units.drain(cpu_unit_id("a", 1), "bad memory");
  const auto id = submit_gang(2);
  place();
  EXPECT_THAT(a->started, IsEmpty());
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  state_->units.resume(cpu_unit_id("a", 1));
  place();
  EXPECT_THAT(a->started, SizeIs(2));
}

TEST_F(Gangs, ThatHaveWaitedLongAreNotOvertakenForEver) {
  join("a");
  const auto busy = submit({spec()})->first_task;
  place();
  ASSERT_EQ(task(busy).state, TaskState::kAssigned);
  const auto id = submit_gang(2);
  clock_.advance_ns((settings_.gang_patience_ms + 1) * 1'000'000);
  EXPECT_TRUE(membership_->renew(tickets_["a"]));
  const auto later = submit({spec()})->first_task;
  place();
  EXPECT_EQ(task(later).state, TaskState::kQueued) << "there is a unit, but the gang is first";
  EXPECT_TRUE(exit("a", {busy, 1}, success()));
  place();
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
}

// The time that it waited for others is none that it lacked room.
TEST_F(Gangs, ThatWaitedForOthersAreOvertakenForAsLongAsAnyGang) {
  join("a");
  auto first = spec("first"), gang_after = gang(2);
  gang_after.name = "gang";
  gang_after.after = {"first"};
  const auto id = submit({first, gang_after})->first_task;
  place();
  pass(settings_.gang_patience_ms + 1);
  const auto busy = submit({spec()})->first_task;
  place();
  EXPECT_TRUE(exit("a", {id, 1}, success()));
  flush();
  const auto later = submit({spec()})->first_task;
  place();
  EXPECT_EQ(task(id + 1).state, TaskState::kQueued);
  EXPECT_EQ(task(later).state, TaskState::kAssigned);
  EXPECT_TRUE(exit("a", {busy, 1}, success()));
  pass(settings_.gang_patience_ms + 1);
  const auto last = submit({spec()})->first_task;
  place();
  EXPECT_EQ(task(last).state, TaskState::kQueued);
}

// What no waiting brings about keeps nobody waiting.
TEST_F(Gangs, ThatTheClusterCannotRunAsItIsAreOvertaken) {
  join("a");
  join("b");
  const auto overtaken = [&](const char* why) {
    pass(31'000);
    const auto later = submit({spec("later")})->first_task;
    place();
    ASSERT_EQ(task(later).state, TaskState::kAssigned) << why;
    EXPECT_TRUE(exit(task(later).node, {later, task(later).attempt}, success()));
    flush();
  };
  const auto wide = submit_gang(4);
  state_->units.drain("b/cpu/1", "to be mended");
  overtaken("a unit is drained");
  EXPECT_THAT(task(wide).reason, HasSubstr("could run 3"));
  state_->units.resume("b/cpu/1");
  state_->registry.set_order("b", {.kind = NodeOrder::Kind::kCordoned});
  overtaken("a node is cordoned");
  EXPECT_THAT(task(wide).reason, HasSubstr("could run 2"));
  state_->registry.set_order("b", {});
  place();
  EXPECT_EQ(task(wide).state, TaskState::kAssigned);
}

TEST_F(Gangs, WhoseBoundsNoSetOfNodesMeetsAreOvertaken) {
  join("a");
  join("b");
  join("c");
  auto odd = gang(5);
  odd.gang.ranks_per_node_min = 2;
  const auto refused = submit({odd});
  ASSERT_FALSE(refused) << "nodes have two units";
  EXPECT_THAT(refused.error().message, HasSubstr("no set of nodes can have 5 ranks"));
  auto three = gang(3);
  three.gang.ranks_per_node_min = three.gang.ranks_per_node_max = 2;
  const auto never = submit({three});
  ASSERT_FALSE(never);
  EXPECT_THAT(never.error().message, HasSubstr("cannot be spread over nodes with at least 2"));
}

TEST(GangCapacity, OfBoundsOnTheRanksOfANode) {
  const auto fits = [](std::vector<uint32_t> room, uint32_t ranks, uint32_t least,
                       uint32_t most_ranks = 0) {
    return can_spread(std::move(room),
                      {.ranks = ranks, .ranks_per_node_min = least, .max_ranks = most_ranks});
  };
  EXPECT_TRUE(fits({2, 2}, 4, 2));
  EXPECT_FALSE(fits({2, 2}, 3, 2));
  EXPECT_TRUE(fits({2, 2}, 3, 2, 4)) << "four may begin as well";
  EXPECT_TRUE(fits({3, 2}, 3, 2));
  EXPECT_TRUE(fits({0, 1, 3, 2}, 5, 2));
  EXPECT_FALSE(fits({3, 3}, 7, 1));
  EXPECT_FALSE(fits({3, 3, 3}, 7, 3));
  EXPECT_FALSE(fits({}, 1, 0));
}

TEST_F(Gangs, HigherPrioritiesGoFirst) {
  auto usual = spec("usual"), urgent = spec("urgent");
  urgent.priority = 1;
  const auto id = submit({usual, urgent})->first_task;
  auto a = join("a");
  place();
  ASSERT_THAT(a->started, SizeIs(2));
  EXPECT_EQ(a->started.front().task, id + 1);
}

}  // namespace
}  // namespace tierpilot::testing
