#include "daemon/memory/loop/paging_loop.h"

#include <gmock/gmock.h>

#include <thread>

#include "tests/unit/memory/paging_loop_fixture.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

using PagingLoopTest = PagingLoopFixture;

TEST_F(PagingLoopTest, AStaticGroupIsPlacedWithoutATracker) {
  set_free(0, 1024 * kMiB);
  auto loop = make_loop(PagingMode::kEnforce,
                        {.name = "g", .policy = PagingPolicy::kStatic, .static_tier = 0});
  EXPECT_EQ(trackers.decreed.watching, 0);
  EXPECT_TRUE(loop->watches(1));
  for (int i = 0; i < 20; ++i) pacer.sleep_until(loop->run_round(), {});
  EXPECT_EQ(pages.bytes_on(0), kSize);
}

TEST_F(PagingLoopTest, AZombieHasEnded) {
  auto loop = make_loop();
  run(*loop, 1);
  pages.alive = 2;
  pages.ended_with = EINVAL;
  run(*loop, 1);
  EXPECT_FALSE(loop->watches(1));
  EXPECT_EQ(loop->counters().ended_targets, 1u);
}

TEST_F(PagingLoopTest, BringsTheHotQuarterToFastMemoryAndRests) {
  auto loop = make_loop();
  run(*loop, 6);
  for (uint64_t at = kBase; at < kBase + kSize / 4; at += 4096) ASSERT_EQ(pages.pages[at].node, 0);
  EXPECT_EQ(pages.bytes_on(0), kSize / 4);
  EXPECT_EQ(loop->counters().promoted_bytes, kSize / 4);
  const auto moved = pages.moved_bytes;
  run(*loop, 20);
  EXPECT_EQ(pages.moved_bytes, moved) << "nothing changed, so nothing moves";
}

TEST_F(PagingLoopTest, FollowsTheHotSetWhenItChangesPlace) {
  options.limits.min_heat = 1;
  auto loop = make_loop();
  run(*loop, 10);
  for (const uint64_t quarter : {3, 1, 2}) {
    heat(quarter * kSize / 4, (quarter + 1) * kSize / 4);
    run(*loop, 40);
    uint64_t there = 0;
    for (uint64_t at = kBase + quarter * kSize / 4; at < kBase + (quarter + 1) * kSize / 4;
         at += 4096)
      there += pages.pages[at].node == 0;
    EXPECT_EQ(there * 4096, kSize / 4);
    EXPECT_LE(pages.bytes_on(0), 32 * kMiB);
  }
  EXPECT_GT(loop->counters().demoted_bytes, 0U);
}

TEST_F(PagingLoopTest, KeepsToItsRate) {
  auto loop = make_loop();
  const int64_t start_ns = pacer.now_ns;
  for (int i = 0; i < 8; ++i) {
    run(*loop, 1);
    const double elapsed_s = static_cast<double>(pacer.now_ns - start_ns) / 1e9;
    EXPECT_LE(static_cast<double>(pages.moved_bytes), 8.0 * kMiB * elapsed_s + 2 * kMiB);
  }
}

TEST_F(PagingLoopTest, TheBudgetOfAGroupHolds) {
  auto loop = make_loop(PagingMode::kEnforce, {.name = "g", .fast_budget_bytes = 4 * kMiB});
  run(*loop, 10);
  EXPECT_EQ(pages.bytes_on(0), 4 * kMiB);
}

TEST_F(PagingLoopTest, AdviceMovesNothing) {
  auto loop = make_loop(PagingMode::kAdvise);
  run(*loop, 5);
  EXPECT_EQ(pages.move_calls, 0);
  EXPECT_EQ(loop->counters().advised_bytes, kSize / 4);
  EXPECT_FALSE(loop->latest_advice().moves.empty());
}

TEST_F(PagingLoopTest, ObservingPlansNothing) {
  auto loop = make_loop(PagingMode::kObserve);
  run(*loop, 5);
  EXPECT_EQ(pages.move_calls, 0);
  EXPECT_TRUE(loop->latest_advice().moves.empty());
  const auto view = loop->view();
  ASSERT_EQ(view.size(), 1U);
  EXPECT_EQ(view[0].tracked_bytes, kSize);
  EXPECT_NEAR(view[0].regions[0].heat, 50, 1);
  EXPECT_GT(view[0].chunks[0].pages_in_tier[1], 0U);
}

TEST_F(PagingLoopTest, WhatCannotBeMovedIsLeftAlone) {
  for (auto& [at, page] : pages.pages) {
    page.fails_with = EACCES;
    page.failures = -1;
  }
  auto loop = make_loop();
  run(*loop, 3);
  const int calls = pages.move_calls;
  EXPECT_GT(loop->counters().failed_pages.at(EACCES), 0U);
  run(*loop, 20);
  EXPECT_EQ(pages.move_calls, calls);
  run(*loop, 20);
  EXPECT_GT(pages.move_calls, calls) << "after half a minute it is tried again";
}

// Each look at the thread's CPU time costs a tenth of a second.
struct CostlyPacer final : Pacer {
  explicit CostlyPacer(VirtualPacer& pacer) : pacer(pacer) {}
  int64_t boot_ns() const override { return pacer.boot_ns(); }
  int64_t wall_ms() const override { return pacer.wall_ms(); }
  bool sleep_until(int64_t ns, std::stop_token stop) override {
    return pacer.sleep_until(ns, std::move(stop));
  }
  int64_t thread_cpu_ns() const override { return cpu_ns += 100'000'000; }
  VirtualPacer& pacer;
  mutable int64_t cpu_ns = 0;
};

TEST_F(PagingLoopTest, SpendsWhatItSavedAndThenItsShareOfACore) {
  options.cpu_share = 0.1;
  options.cpu_burst_ns = 1'000'000'000;
  CostlyPacer costly(pacer);
  PagingLoop loop({.sysroot = sysroot,
                   .pacer = costly,
                   .kernel = pages,
                   .trackers = trackers,
                   .tiers = {{.name = "fast", .nodes = {0}, .latency_ns = 100},
                             {.name = "slow", .nodes = {1}, .latency_ns = 500}}},
                  options);
  ASSERT_TRUE(loop.add({.pid = 1, .group = {.name = "g"}, .mode = PagingMode::kObserve}));
  const int64_t start_ns = pacer.now_ns;
  for (int i = 0; i < 5; ++i) pacer.sleep_until(loop.run_round(), {});
  EXPECT_EQ(loop.counters().slowed_rounds, 0U) << "half a second was saved";
  for (int i = 0; i < 50; ++i) {
    pacer.sleep_until(loop.run_round(), {});
    const auto elapsed_ns = static_cast<double>(pacer.now_ns - start_ns);
    const auto cpu_ns = static_cast<double>(loop.counters().cpu_ns);
    EXPECT_LE(cpu_ns, 1e9 + 0.1 * elapsed_ns + 2e8);
  }
  EXPECT_GT(loop.counters().slowed_rounds, 10U);
}

TEST_F(PagingLoopTest, ATrackerThatCostsTooMuchLooksLessAndRoundsGoOn) {
  options.cpu_share = 0.04;
  trackers.decreed.cpu_share = 0.3;
  auto loop = make_loop(PagingMode::kObserve);
  const int64_t start_ns = pacer.now_ns;
  run(*loop, 60);
  EXPECT_NEAR(trackers.decreed.effort * 0.3, 0.02, 0.01) << "half of the share";
  EXPECT_LE(pacer.now_ns - start_ns, 61 * options.interval_ns) << "rest makes no tracker cheaper";
}

TEST_F(PagingLoopTest, CpuTimeOfATrackerThatHasEndedStaysSpent) {
  options.cpu_share = 0.05;
  trackers.decreed.cpu_share = 0.02;
  auto loop = make_loop();
  run(*loop, 10);
  const auto spent_ns = loop->counters().tracker_cpu_ns;
  EXPECT_GT(spent_ns, 0);
  trackers.decreed.thread_ended = true;
  trackers.decreed.alive = false;
  run(*loop, 3);
  EXPECT_GE(loop->counters().tracker_cpu_ns, spent_ns);
}

TEST_F(PagingLoopTest, WhatATrackerMissesIsNotThrownOut) {
  trackers.decreed.ranks_pages = false;
  auto loop = make_loop();
  run(*loop, 10);
  EXPECT_EQ(pages.moved_bytes, 0U);
  EXPECT_GT(loop->counters().advised_bytes, 0U);
  EXPECT_EQ(loop->view().at(0).target.mode, PagingMode::kAdvise);
}

TEST_F(PagingLoopTest, ATrackerThatWasAskedForIsObeyed) {
  trackers.decreed.ranks_pages = false;
  options.trust_any_tracker = true;
  auto loop = make_loop();
  run(*loop, 10);
  EXPECT_EQ(pages.bytes_on(0), kSize / 4);
}

TEST_F(PagingLoopTest, AUnitLargerThanARoundsShareMovesInTheEnd) {
  options.bytes_per_s = kMiB;
  options.chunks.min_bytes = 16 * kMiB;
  auto loop = make_loop();
  run(*loop, 60);
  EXPECT_EQ(pages.bytes_on(0), kSize / 4);
}

TEST_F(PagingLoopTest, WhatTheKernelKeepsOfATierIsNoRoom) {
  pages.map(kBase, kBase + kSize / 4, 0);
  pages.room[0] = 0;
  heat(kSize / 2, kSize / 2 + kSize / 8);
  auto loop = make_loop();
  for (int i = 0; i < 40; ++i) {
    pacer.sleep_until(loop->run_round(), {});
    // 4 MiB more are free than can be had.
    set_free(0, pages.room[0] + 4 * kMiB);
  }
  for (uint64_t at = kBase + kSize / 2; at < kBase + kSize / 2 + kSize / 8; at += 4096)
    ASSERT_EQ(pages.pages[at].node, 0);
}

TEST_F(PagingLoopTest, WhatMayBeChanceMovesNothing) {
  // Half of the pages are in fast memory, and the others seem twice as hot.
  pages.map(kBase, kBase + kSize / 2, 0);
  trackers.decreed.samples = {{kBase, kBase + kSize / 2, 2}, {kBase + kSize / 2, kBase + kSize, 4}};
  const auto moved_with = [&](double observed_s) {
    trackers.decreed.observed_s = observed_s;
    pages.moved_bytes = 0;
    set_free(0, 0);
    auto loop = make_loop();
    loop->run_round();
    return pages.moved_bytes;
  };
  EXPECT_EQ(moved_with(0.2), 0U) << "0.4 accesses seen, against 0.8";
  EXPECT_GT(moved_with(200), 0U) << "400 against 800";
}

TEST_F(PagingLoopTest, AnEndedProcessIsDropped) {
  auto loop = make_loop();
  run(*loop, 2);
  trackers.decreed.alive = false;
  run(*loop, 1);
  EXPECT_TRUE(loop->view().empty());
  EXPECT_EQ(loop->counters().ended_targets, 1U);
  EXPECT_EQ(trackers.decreed.watching, 0);
}

TEST_F(PagingLoopTest, TroubleIsToldAndPlansNothing) {
  auto loop = make_loop();
  write("/proc/1/smaps", "this is no map\n");
  run(*loop, 1);
  EXPECT_THAT(loop->view().at(0).trouble, HasSubstr("smaps line 1"));
  EXPECT_EQ(pages.move_calls, 0);
}

TEST_F(PagingLoopTest, AStopWaitsForNoMoreThanOneSample) {
  auto loop = make_loop();
  for (const pid_t pid : {2, 3, 4}) {
    write_smaps(pid, kBase, kBase + kSize);
    ASSERT_TRUE(loop->add({.pid = pid, .group = {.name = "g"}, .mode = PagingMode::kEnforce}));
  }
  std::stop_source stop;
  trackers.decreed.meanwhile = [&]() -> Status {
    stop.request_stop();
    return {};
  };
  loop->run_round(stop.get_token());
  EXPECT_EQ(trackers.decreed.looks, 1);
  EXPECT_EQ(pages.move_calls, 0);
}

TEST_F(PagingLoopTest, WhoAnswersNobodyIsAskedOnceARound) {
  auto loop = make_loop();
  for (const pid_t pid : {2, 3, 4}) {
    write_smaps(pid, kBase, kBase + kSize);
    ASSERT_TRUE(loop->add({.pid = pid, .group = {.name = "g"}, .mode = PagingMode::kEnforce}));
  }
  trackers.decreed.meanwhile = [&]() -> Status {
    pacer.now_ns += 15'000'000'000;
    return fail(ErrorCode::kUnreachable, "DAMON: tierpilot-damon does not answer");
  };
  loop->run_round();
  EXPECT_EQ(trackers.decreed.looks, 1);
  for (const auto& target : loop->view()) {
    EXPECT_THAT(target.trouble, HasSubstr("does not answer"));
    EXPECT_TRUE(target.chunks.empty()) << "plans need to know where pages are";
  }
  loop->run_round();
  EXPECT_EQ(trackers.decreed.looks, 2);
  trackers.decreed.meanwhile = [&]() -> Status {
    return fail(ErrorCode::kUnreachable, "DAMON: tierpilot-damon was stopped or killed");
  };
  loop->run_round();
  EXPECT_EQ(trackers.decreed.looks, 6) << "who says so at once keeps nobody waiting";
}

TEST_F(PagingLoopTest, PagesOfHugetlbfsAreBroughtUpToo) {
  write("/proc/1/smaps",
        fmt::format("{:x}-{:x} rw-p 00000000 00:0f 9    /anon_hugepage (deleted)\nRss: 0 kB\n"
                    "KernelPageSize: 2048 kB\nAnonHugePages: 0 kB\nShared_Hugetlb: 0 kB\n"
                    "Private_Hugetlb: {} kB\n",
                    kBase, kBase + kSize, kSize >> 10));
  pages.pages.clear();
  pages.map(kBase, kBase + kSize, 1, kHugePageBytes);
  auto loop = make_loop();
  run(*loop, 6);
  const auto view = loop->view();
  for (const auto& chunk : view.at(0).chunks) {
    EXPECT_EQ(chunk.page_bytes, kHugePageBytes);
    EXPECT_EQ(chunk.start % kHugePageBytes + chunk.end % kHugePageBytes, 0U);
  }
  EXPECT_EQ(pages.bytes_on(0), kSize / 4);
}

TEST_F(PagingLoopTest, AnEmptyPoolOfLargestPagesSaysNothingOfTheTier) {
  constexpr uint64_t kLargest = 32 * kMiB;
  write("/proc/2/smaps",
        fmt::format("{:x}-{:x} rw-p 00000000 00:0f 9    /anon_hugepage (deleted)\n"
                    "KernelPageSize: {} kB\nPrivate_Hugetlb: {} kB\n",
                    kBase + kSize, kBase + kSize + kLargest, kLargest >> 10, kLargest >> 10));
  pages.map(kBase + kSize, kBase + kSize + kLargest, 1, kLargest);
  auto& largest = pages.pages[kBase + kSize];
  largest.fails_with = ENOMEM;
  largest.failures = -1;
  trackers.decreed.samples = {{kBase, kBase + kSize / 4, 50},
                              {kBase + kSize, kBase + kSize + kLargest, 90}};
  options.bytes_per_s = 0;
  auto loop = make_loop();
  pages.alive = 0;  // any
  ASSERT_TRUE(loop->add({.pid = 2, .group = {.name = "h"}, .mode = PagingMode::kEnforce}));
  run(*loop, 3);
  EXPECT_EQ(pages.bytes_on(0), kSize / 4) << "what has room is moved";
  EXPECT_EQ(loop->counters().failed_pages.at(ENOMEM), 1U) << "and it is not tried each round";
}

TEST_F(PagingLoopTest, OneProcessIsWatchedOnce) {
  auto loop = make_loop();
  EXPECT_EQ(loop->add({.pid = 1, .group = {}}).error().code, ErrorCode::kConflict);
  loop->remove(1);
  EXPECT_EQ(trackers.decreed.watching, 0);
  EXPECT_TRUE(loop->add({.pid = 1, .group = {}}));
}

TEST_F(PagingLoopTest, RunsInAThreadUntilItIsStopped) {
  auto loop = make_loop();
  SystemPacer real;
  options.interval_ns = 1'000'000;
  PagingLoop threaded({.sysroot = sysroot,
                       .pacer = real,
                       .kernel = pages,
                       .trackers = trackers,
                       .tiers = loop->tiers()},
                      options);
  std::jthread thread([&](std::stop_token stop) { threaded.run(stop); });
  ASSERT_TRUE(threaded.add({.pid = 1, .group = {.name = "g"}, .mode = PagingMode::kAdvise}));
  while (threaded.counters().rounds < 5) std::this_thread::yield();
  threaded.remove(1);
}

}  // namespace
}  // namespace tierpilot
