// Which processes are found and how they are placed, on a machine of two tiers that is made up.
#include "daemon/agent/paging/paging_worker.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "fake_machine.h"

namespace tierpilot::agent {
namespace {

constexpr pid_t kSupervisor = 500, kMain = 501, kForeign = 900;
constexpr AttemptId kAttempt{7, 1};

struct PagingWorkerTest : testing::Test {
  PagingWorkerTest() {
    config.interval_ms = 1'000;
    config.scan_interval_ms = 5'000;
    machine.add_process(kSupervisor, 1, "supervisor", 3 * kMiB);
    machine.pages.alive = kMain;
  }

  static PlacedTask task(const char* wish = "") {
    return {.attempt = kAttempt, .pid = kMain, .name = "sort", .wish = *parse_memory_wish(wish)};
  }
  void add_main(uint64_t bytes = 64 * kMiB, int node = 1) {
    machine.add_process(kMain, kSupervisor, "sort", bytes);
    machine.pages.map(kFakeBase, kFakeBase + bytes, node);
  }
  // Follows the worker's own times for so long, or until it waits for somebody.
  void run(int64_t s) {
    const int64_t end_ns = machine.pacer.now_ns + s * 1'000'000'000;
    while (machine.pacer.now_ns < end_ns) {
      const int64_t next_ns = worker->step();
      if (next_ns == PagingWorker::kNever) return;
      machine.pacer.now_ns = std::max(machine.pacer.now_ns + 1, std::min(next_ns, end_ns));
    }
  }
  void start(std::vector<PagingTier> tiers = FakeMachine::two_tiers()) {
    worker = std::make_unique<PagingWorker>(config, machine.environment(), std::move(tiers));
  }

  FakeMachine machine;
  PagingConfig config;
  std::unique_ptr<PagingWorker> worker;
};

TEST_F(PagingWorkerTest, HasNothingToDoWithoutTasksAndRules) {
  start();
  EXPECT_EQ(worker->step(), PagingWorker::kNever);
  EXPECT_EQ(machine.heat.sources, 0);
}

TEST_F(PagingWorkerTest, BringsATasksHotPagesToFastMemoryAndLetsGoAtItsEnd) {
  add_main();
  machine.heat.samples = {{kFakeBase, kFakeBase + 16 * kMiB, 50}};
  start();
  worker->step();
  worker->task_started(task());
  run(20);
  EXPECT_GE(machine.pages.bytes_on(0), 16 * kMiB);
  auto state = worker->state();
  EXPECT_EQ(state.watched, 1u);
  EXPECT_EQ(state.tracker, "damon");
  EXPECT_GE(state.counters.promoted_bytes, 16 * kMiB);

  worker->task_ended(kAttempt);
  run(20);
  EXPECT_EQ(worker->step(), PagingWorker::kNever);
  EXPECT_EQ(machine.heat.sources, 0) << "the tracker is given back";
  EXPECT_EQ(worker->state().watched, 0u);
  EXPECT_EQ(worker->state().counters.promoted_bytes, state.counters.promoted_bytes);
}

TEST_F(PagingWorkerTest, FindsTheProcessesThatATaskStartsAndThoseItDetaches) {
  add_main(2 * kMiB);
  start();
  worker->task_started(task());
  run(2);
  EXPECT_EQ(worker->state().watched, 0u) << "too small to be worth a tracker";
  machine.add_process(510, kMain, "child", 8 * kMiB);
  machine.add_process(511, 510, "grandchild", 8 * kMiB);
  machine.add_process(512, kSupervisor, "detached", 8 * kMiB);
  machine.add_process(513, 1, "stranger", 8 * kMiB);
  machine.pages.alive = 510;  // the others end as soon as they are looked at
  run(5);
  EXPECT_EQ(worker->state().counters.ended_targets, 2u);
}

TEST_F(PagingWorkerTest, AWishForOneTierIsKeptAndNeedsNoTracker) {
  add_main(64 * kMiB, 0);
  machine.tracker = fail(ErrorCode::kUnavailable, "no DAMON");
  machine.heat.samples = {{kFakeBase, kFakeBase + 16 * kMiB, 50}};
  start();
  worker->task_started(task("slow"));
  run(10);
  EXPECT_EQ(machine.pages.bytes_on(1), 64 * kMiB);
  EXPECT_EQ(machine.heat.watched.size(), 0u);
  EXPECT_EQ(worker->state().watched, 1u);
  EXPECT_EQ(worker->state().tracker, "");
}

TEST_F(PagingWorkerTest, AWishForSeveralTiersIsLeftAlone) {
  add_main();
  machine.heat.samples = {{kFakeBase, kFakeBase + 16 * kMiB, 50}};
  start();
  worker->task_started(task("interleave:1,1"));
  run(10);
  EXPECT_EQ(worker->state().watched, 0u);
  EXPECT_EQ(machine.pages.moved_bytes, 0u);
}

TEST_F(PagingWorkerTest, ForeignProcessesArePlacedOnlyByARuleAndOnlyLookedAtByDefault) {
  machine.add_process(kForeign, 1, "postgres", 64 * kMiB);
  machine.add_process(::getpid(), 1, "postgres", 64 * kMiB);
  machine.pages.alive = kForeign;
  machine.pages.map(kFakeBase, kFakeBase + 64 * kMiB, 1);
  machine.heat.samples = {{kFakeBase, kFakeBase + 16 * kMiB, 50}};
  config.rules = {{.match = {.name = "postgres"}, .group = {.name = "db"}}};
  start();
  run(10);
  EXPECT_EQ(worker->state().watched, 1u) << "never the daemon itself";
  EXPECT_EQ(machine.pages.moved_bytes, 0u);

  config.rules[0].mode = PagingMode::kEnforce;
  run(10);
  EXPECT_GE(machine.pages.bytes_on(0), 16 * kMiB);
  machine.end_process(kForeign);
  machine.pages.alive = 0;
  run(10);
  EXPECT_EQ(worker->state().watched, 0u);
  EXPECT_EQ(machine.heat.sources, 0);
}

TEST_F(PagingWorkerTest, ARuleAlsoHoldsForTasksAndItsBudgetIsHonoured) {
  add_main();
  machine.heat.samples = {{kFakeBase, kFakeBase + 32 * kMiB, 50}};
  config.rules = {
      {.match = {.task = "so*"}, .group = {.name = "sorts", .fast_budget_bytes = 8 * kMiB}}};
  start();
  worker->task_started(task());
  run(30);
  EXPECT_GT(machine.pages.bytes_on(0), 4 * kMiB);
  EXPECT_LE(machine.pages.bytes_on(0), 8 * kMiB);
}

TEST_F(PagingWorkerTest, AnotherProcessWithTheSameNumberIsAnotherProcess) {
  machine.add_process(kForeign, 1, "postgres", 64 * kMiB, 100);
  machine.pages.alive = kForeign;
  machine.pages.map(kFakeBase, kFakeBase + 64 * kMiB, 1);
  config.rules = {{.match = {.name = "postgres"}, .group = {.name = "db"}}};
  start();
  run(6);
  const auto watching = machine.heat.watched.size();
  EXPECT_EQ(watching, 1u);
  machine.add_process(kForeign, 1, "other", 64 * kMiB, 200);
  run(6);
  EXPECT_EQ(worker->state().watched, 0u);
}

TEST_F(PagingWorkerTest, TellsWhatCannotBeWatched) {
  machine.heat.slots = 0;
  add_main();
  start();
  worker->task_started(task());
  run(3);
  EXPECT_EQ(worker->state().watched, 0u);
  EXPECT_EQ(worker->state().unwatched, 1u);
  EXPECT_EQ(worker->state().trouble, "no kdamond is left");
  machine.heat.slots = 1;
  run(10);
  EXPECT_EQ(worker->state().watched, 1u) << "it is tried again";
}

TEST_F(PagingWorkerTest, TheSmallestGivesWayToOneThatIsMuchLarger) {
  constexpr pid_t kLarge = 600, kAlike = 601;
  machine.heat.slots = 1;
  add_main();
  start();
  worker->task_started(task());
  run(6);
  ASSERT_EQ(machine.heat.watched, std::set<pid_t>{kMain});
  machine.add_process(kAlike, kSupervisor, "alike", 80 * kMiB);
  run(12);
  EXPECT_EQ(machine.heat.watched, std::set<pid_t>{kMain});
  EXPECT_EQ(worker->state().unwatched, 1u);
  machine.pages.alive = kLarge;
  machine.add_process(kLarge, kSupervisor, "large", 640 * kMiB);
  run(12);
  EXPECT_EQ(machine.heat.watched, std::set<pid_t>{kLarge});
  EXPECT_EQ(worker->state().watched, 1u);
  EXPECT_EQ(worker->state().unwatched, 2u);
}

TEST_F(PagingWorkerTest, AStaticRuleForATierThatIsNotHereIsToldAndLeftOut) {
  add_main();
  config.rules = {{.match = {.task = "sort"},
                   .group = {.name = "far", .policy = PagingPolicy::kStatic},
                   .tier = "node9"}};
  start();
  worker->task_started(task());
  run(3);
  EXPECT_EQ(worker->state().watched, 0u);
  EXPECT_NE(worker->state().trouble.find("group 'far': tier 'node9'"), std::string::npos);
}

TEST_F(PagingWorkerTest, OtherTiersBeginAnewAndOneTierRests) {
  add_main();
  machine.heat.samples = {{kFakeBase, kFakeBase + 16 * kMiB, 50}};
  start({FakeMachine::two_tiers()[0]});
  worker->task_started(task());
  EXPECT_EQ(worker->step(), PagingWorker::kNever);
  worker->set_tiers(FakeMachine::two_tiers());
  run(10);
  EXPECT_GE(machine.pages.bytes_on(0), 16 * kMiB);
  worker->set_tiers({FakeMachine::two_tiers()[0]});
  EXPECT_EQ(worker->step(), PagingWorker::kNever);
  EXPECT_EQ(machine.heat.sources, 0);
}

TEST_F(PagingWorkerTest, ManyShortTasksDoNotMakeItSearchAllTheTime) {
  start();
  int scans = 0;
  for (int i = 0; i < 1'000; ++i) {
    auto one = task();
    one.attempt.task = static_cast<uint64_t>(i);
    worker->task_started(one);
    const int64_t before_ns = machine.pacer.now_ns;
    scans += worker->step() - before_ns > 1'000'000'000;
    worker->task_ended(one.attempt);
    machine.pacer.now_ns += 10'000'000;
  }
  EXPECT_LT(scans, 25) << "at most two a second, in ten seconds";
}

}  // namespace
}  // namespace tierpilot::agent
