// Ranks of a gang are placed, started and ended together, whatever happens to one of them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "coordinator/core/decisions/dispatcher.h"
#include "coordinator/store/records.h"
#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Nodes have two units each.
class Gangs : public CoreTest {
 protected:
  Gangs() {
    auto host = PolicyHost::start({.state_dir = {}, .active = "least-loaded"});
    if (!host) throw std::runtime_error(host.error().message);
    host_ = std::move(*host);
    settings_.backlog_units = 0;
    again();
  }
  ~Gangs() override { host_.reset(); }

  // As after a restart of the coordinator.
  void again() {
    dispatcher_.reset();
    restart();
    oversight_ = std::make_unique<Oversight>(*store_, clock_);
    dispatcher_ = std::make_unique<Dispatcher>(
        *state_, *host_, *oversight_,
        Dispatcher::Hooks{[this](auto work) { posts_.post(std::move(work)); },
                          [](int64_t, auto) {}});
    dispatcher_->set_lifecycle(*lifecycle_);
    dispatcher_->set_gangs(*gangs_);
  }
  void place() {
    dispatcher_->pump();
    flush();
    flush();
  }
  void pass(int64_t ms) {
    clock_.advance_ns(ms * 1'000'000);
    while (!later_.empty() && later_.begin()->first <= clock_.boot_ns())
      later_.extract(later_.begin()).mapped()();
  }
  static TaskSpec gang(uint32_t ranks, uint32_t restarts = 0) {
    auto gang = spec("train");
    gang.gang.ranks = ranks;
    gang.gang.max_restarts = restarts;
    return gang;
  }
  uint64_t submit_gang(uint32_t ranks, uint32_t restarts = 0) {
    return submit({gang(ranks, restarts)})->first_task;
  }
  const Task& task(uint64_t id) { return *state_->tasks.find(id); }
  const Task& rank(uint64_t gang, uint32_t number) {
    return task(state_->tasks.ranks_of(gang)[number]);
  }
  AttemptId attempt(uint64_t gang, uint32_t number) {
    return {rank(gang, number).id, rank(gang, number).attempt};
  }
  void start_all(uint64_t gang) {
    for (const uint64_t id : state_->tasks.ranks_of(gang)) {
      const auto& rank = task(id);
      lifecycle_->started(rank.node, {id, rank.attempt}, 1000, {rank.rank->rank % 2});
    }
    flush();
  }
  void end(uint64_t gang, uint32_t number, TaskExit how) {
    const auto id = attempt(gang, number);
    EXPECT_TRUE(exit(rank(gang, number).node, id, std::move(how)));
  }
  // Those that were asked to end do so.
  void end_cancelled(uint64_t gang) {
    for (const uint64_t id : std::vector(state_->tasks.ranks_of(gang))) {
      const auto* rank = state_->tasks.find(id);
      if (!rank || !rank->cancel_asked || rank->state == TaskState::kWaiting) continue;
      TaskExit cancelled;
      cancelled.how = TaskEnd::kCancelled;
      EXPECT_TRUE(exit(rank->node, {id, rank->attempt}, cancelled));
    }
    flush();
  }
  static TaskExit killed(int signal) {
    TaskExit exit;
    exit.how = TaskEnd::kSignalled;
    exit.code = signal;
    return exit;
  }

  std::unique_ptr<PolicyHost> host_;
  std::unique_ptr<Oversight> oversight_;
  std::unique_ptr<Dispatcher> dispatcher_;
};

TEST_F(Gangs, ArePlacedOnlyWhenAllRanksHaveRoom) {
  auto a = join("a");
  join("empty", 9);
  membership_->disconnected(tickets_["empty"]);  // known, and not there now
  const auto id = submit_gang(3);
  place();
  EXPECT_THAT(a->started, IsEmpty());
  EXPECT_THAT(task(id).reason, HasSubstr("3 ranks"));
  auto b = join("b");
  place();
  EXPECT_EQ(a->started.size() + b->started.size(), 3u);
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
}

TEST_F(Gangs, KeepAwayFromNodesThatWouldStartARankAsATaskOfItsOwn) {
  auto old = join("old");
  join("away", 9);
  membership_->disconnected(tickets_["away"]);  // known, and not there now
  state_->registry.find("old")->facts.runs_gangs = false;
  const auto id = submit_gang(2);
  place();
  EXPECT_THAT(old->started, IsEmpty());
  EXPECT_THAT(task(id).reason, HasSubstr("update"));
  auto b = join("b");
  place();
  EXPECT_THAT(old->started, IsEmpty());
  EXPECT_EQ(b->started.size(), 2u);
}

TEST_F(Gangs, TellEveryRankItsPlaceAndWhereAllMeet) {
  std::vector<std::shared_ptr<FakeNode>> nodes{join("a"), join("b")};
  const auto id = submit_gang(4);
  place();
  std::set<uint32_t> ranks;
  for (const auto& node : nodes) {
    ASSERT_THAT(node->assignments, SizeIs(2));
    for (uint32_t local = 0; local < 2; ++local) {
      const auto& told = *node->assignments[local].rank;
      ranks.insert(told.rank);
      EXPECT_EQ(told.gang, id);
      EXPECT_EQ(told.world_size, 4u);
      EXPECT_EQ(told.local_world_size, 2u);
      EXPECT_EQ(told.local_rank, local);
      EXPECT_EQ(told.node_rank, told.rank / 2);
      EXPECT_EQ(told.master_address, "127.0.0.1");
      EXPECT_EQ(told.master_port, told.rank == 0 ? 0 : 29500);
    }
  }
  EXPECT_EQ(ranks, (std::set<uint32_t>{0, 1, 2, 3}));
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
  start_all(id);
  EXPECT_EQ(task(id).state, TaskState::kRunning);
}

TEST_F(Gangs, SucceedWhenAllRanksHaveAndLetOthersBeginThen) {
  auto a = join("a");
  auto after = spec("after", {"train"});
  const auto id = submit({gang(2), after})->first_task;
  place();
  start_all(id);
  end(id, 0, success());
  EXPECT_EQ(stored(id)->state, TaskState::kRunning);
  EXPECT_EQ(task(id + 1).state, TaskState::kWaiting);
  end(id, 1, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
  EXPECT_EQ(stored(id + 2)->state, TaskState::kSucceeded);  // its first rank
  place();
  EXPECT_THAT(a->started, SizeIs(3));
  EXPECT_EQ(state_->registry.find("a")->held.size(), 1u);
}

TEST_F(Gangs, ThatANodeRefusesAreTakenBackWholeAndTriedElsewhere) {
  auto a = join("a"), b = join("b");
  b->refusal = Error{ErrorCode::kUnavailable, "the node is stopping"};
  const auto id = submit_gang(4);
  place();
  for (const auto& told : a->assignments) lifecycle_->started("a", told.attempt, 5, {0});
  end_cancelled(id);
  EXPECT_EQ(task(id).state, TaskState::kQueued);
  EXPECT_EQ(task(id).restarts, 0u);
  EXPECT_EQ(task(id).forgiven, 1u);
  EXPECT_EQ(state_->registry.find("b")->assigned_units, 0u);
  auto c = join("c");
  place();
  EXPECT_THAT(c->started, SizeIs(2));
  EXPECT_EQ(task(id).attempt, 2u);
}

TEST_F(Gangs, EndEverywhereWhenARankFailsAndAreTriedAgainOnceNothingRuns) {
  auto a = join("a"), b = join("b");
  const auto id = submit_gang(4, 1);
  place();
  start_all(id);
  const auto first = attempt(id, 3);
  end(id, 1, failure(3));
  EXPECT_EQ(a->cancelled.size() + b->cancelled.size(), 3u);
  place();
  EXPECT_EQ(a->started.size() + b->started.size(), 4u) << "ranks of the last try still run";
  end_cancelled(id);
  EXPECT_EQ(task(id).restarts, 1u);
  place();
  EXPECT_EQ(a->started.size() + b->started.size(), 8u);
  EXPECT_EQ(attempt(id, 3).attempt, first.attempt + 1);
  start_all(id);
  end(id, 0, failure(3));
  end_cancelled(id);
  EXPECT_EQ(stored(id)->state, TaskState::kFailed);
  EXPECT_THAT(stored(id)->reason, HasSubstr("after 1 restarts"));
  EXPECT_THAT(stored(id)->reason, HasSubstr("rank 0"));
  EXPECT_EQ(stored(id + 1)->state, TaskState::kFailed);
  EXPECT_EQ(state_->registry.find("a")->assigned_units, 0u);
}

TEST_F(Gangs, OfWhichANodeIsLostWaitForItsLeaseBeforeTheyAreTriedAgain) {
  auto a = join("a"), b = join("b");
  const auto id = submit_gang(4);
  place();
  start_all(id);
  const auto lost = rank(id, 0).node;
  const auto other = lost == "a" ? b : a;
  membership_->disconnected(tickets_[lost]);
  EXPECT_THAT(other->cancelled, IsEmpty());
  pass(settings_.lease_ms - 1000);
  EXPECT_TRUE(membership_->renew(tickets_[lost == "a" ? "b" : "a"]));
  membership_->expire();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
  pass(1500);
  membership_->expire();
  EXPECT_THAT(other->cancelled, SizeIs(2));
  join("c");
  place();
  EXPECT_EQ(task(id).state, TaskState::kRunning) << "two ranks have not ended yet";
  end_cancelled(id);
  place();
  EXPECT_EQ(task(id).state, TaskState::kAssigned);
  EXPECT_EQ(task(id).attempt, 2u);
  EXPECT_EQ(state_->units.failures(cpu_unit_id(lost, 0)), 1u);
}

TEST_F(Gangs, GoOnThroughARestartOfTheCoordinator) {
  join("a");
  const auto id = submit_gang(2, 1);
  place();
  start_all(id);
  end(id, 0, success());
  const auto running = attempt(id, 1);
  again();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
  auto a = join("a", 7, {running});
  place();
  EXPECT_THAT(a->started, IsEmpty());
  EXPECT_THAT(a->cancelled, IsEmpty());
  end(id, 1, success());
  flush();
  EXPECT_EQ(stored(id)->state, TaskState::kSucceeded);
}

TEST_F(Gangs, OfWhichOnlyTheRanksStartsAreOnDiskAreKnownToRun) {
  join("a");
  const auto id = submit_gang(2);
  place();
  start_all(id);
  auto assigned = task(id);
  assigned.state = TaskState::kAssigned;
  store_->write([assigned](Db& db) { return records::update_task(db, assigned); }, nullptr);
  flush();
  again();
  EXPECT_EQ(task(id).state, TaskState::kRunning);
}

TEST_F(Gangs, WhoseRankFailedBeforeARestartOfTheCoordinatorEndAllTheSame) {
  join("a");
  const auto id = submit_gang(2);
  place();
  start_all(id);
  const auto other = attempt(id, 1);
  end(id, 0, failure(4));
  again();
  auto a = join("a", 7, {other});
  ASSERT_THAT(a->cancelled, SizeIs(1));
  EXPECT_EQ(a->cancelled.front().first, other);
  end_cancelled(id);
  EXPECT_EQ(stored(id)->state, TaskState::kFailed);
  EXPECT_THAT(stored(id)->reason, HasSubstr("exit status 4"));
}

TEST_F(Gangs, AreCancelledAsAWhole) {
  auto a = join("a");
  const auto id = submit_gang(2, 5);
  place();
  start_all(id);
  lifecycle_->cancel(rank(id, 1).id, nullptr);  // of one rank as well
  EXPECT_THAT(a->cancelled, SizeIs(2));
  end_cancelled(id);
  EXPECT_EQ(stored(id)->state, TaskState::kCancelled);
  const auto queued = submit_gang(2);
  lifecycle_->cancel(queued, nullptr);
  flush();
  EXPECT_EQ(stored(queued)->state, TaskState::kCancelled);
  EXPECT_EQ(stored(queued + 1)->state, TaskState::kCancelled);
}

TEST_F(Gangs, ThatDoNotStartInTimeAreTakenBack) {
  auto a = join("a");
  auto late = gang(2);
  late.gang.start_within_ms = 5000;
  const auto id = submit({late})->first_task;
  place();
  lifecycle_->started("a", attempt(id, 0), 5, {0});
  pass(5001);
  EXPECT_THAT(a->cancelled, SizeIs(2));
  EXPECT_THAT(task(id).reason, HasSubstr("rank 1 did not start"));
}

TEST_F(Gangs, KeepAwayFromUnitsThatFailAndAreForgivenWhatIsTheirOwnFault) {
  std::map<std::string, std::shared_ptr<FakeNode>> nodes{{"a", join("a")}, {"b", join("b")}};
  const auto id = submit_gang(1, 5);
  // Starts on the unit that it was to have first, and is killed. Gives that unit.
  const auto killed_on_unit = [&] {
    place();
    const auto& node = rank(id, 0).node;
    const uint32_t number = nodes[node]->assignments.back().rank->cpu_units.front();
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
    if (unit != first) EXPECT_LT(rate.mean, rates.at(first).mean) << unit;
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
    for (const auto& gpu : assignment.rank->gpus) gpus.insert(gpu);
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
