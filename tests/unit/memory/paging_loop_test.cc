// The whole loop on a machine of two nodes that is made up: smaps and meminfo in a folder, pages in
// a map, accesses by decree, and virtual time.
#include "daemon/memory/loop/paging_loop.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/bytes.h"
#include "tests/support/scratch_directory.h"
#include "tests/unit/memory/fake_pages.h"

namespace tierpilot {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kBase = 0x7f00'0000'0000;
constexpr uint64_t kSize = 64 * kMiB;

struct Decreed {
  std::vector<AccessSample> samples;
  bool alive = true;
  int watching = 0;
  double cpu_share = 0;  // of the kernel, at full effort
  double effort = 1;
  double observed_s = 0;  // by a sample
  bool ranks_pages = true;
  bool thread_ended = false;  // it then tells no CPU time any more
};

class DecreedTracker final : public HeatTracker {
 public:
  DecreedTracker(Decreed& decreed, const Clock& clock) : decreed_(decreed), clock_(clock) {
    ++decreed_.watching;
  }
  ~DecreedTracker() override { --decreed_.watching; }
  const TrackerTraits& traits() const override { return traits_; }
  Status start() override { return {}; }
  Result<std::vector<AccessSample>> sample(std::span<const TrackedRange>) override {
    if (!decreed_.alive) return fail(ErrorCode::kNotFound, "process 1 has ended");
    return decreed_.samples;
  }
  void stop() override {}
  int64_t kernel_cpu_ns() const override {
    if (decreed_.thread_ended) return 0;
    const double elapsed_ns = static_cast<double>(clock_.boot_ns() - last_ns_);
    cpu_ns_ += elapsed_ns * decreed_.cpu_share * decreed_.effort;
    last_ns_ = clock_.boot_ns();
    return static_cast<int64_t>(cpu_ns_);
  }
  void scale_effort(double factor) override { decreed_.effort *= factor; }
  double observed_s() const override { return decreed_.observed_s; }

 private:
  Decreed& decreed_;
  const Clock& clock_;
  mutable int64_t last_ns_ = clock_.boot_ns();
  mutable double cpu_ns_ = 0;
  TrackerTraits traits_{.kind = TrackerKind::kDamon,
                        .resolution = {},
                        .blind_spots = {},
                        .effect = {},
                        .ranks_pages = decreed_.ranks_pages};
};

class DecreedSource final : public TrackerSource {
 public:
  explicit DecreedSource(const Clock& clock) : clock_(clock) {}
  TrackerOffer offer() const override { return {}; }
  Status open() override { return {}; }
  Result<std::unique_ptr<HeatTracker>> make(pid_t) override {
    return std::make_unique<DecreedTracker>(decreed, clock_);
  }
  Decreed decreed;

 private:
  const Clock& clock_;
};

struct PagingLoopTest : ::testing::Test {
  PagingLoopTest() {
    write_smaps(1, kBase, kBase + kSize);
    pages.map(kBase, kBase + kSize, 1);
    set_free(0, 32 * kMiB);
    set_free(1, 1024 * kMiB);
    heat(0, kSize / 4);
    options.limits.reserve_share = 0;
    options.cpu_share = 0;
    options.bytes_per_s = 8 * kMiB;
  }

  void write(const std::string& path, const std::string& text) {
    const auto file = sysroot.resolve(path);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void write_smaps(pid_t pid, uint64_t start, uint64_t end) {
    write(fmt::format("/proc/{}/smaps", pid),
          fmt::format("{:x}-{:x} rw-p 00000000 00:00 0 \nRss: {} kB\nKernelPageSize: 4 kB\n", start,
                      end, (end - start) >> 10));
  }
  void set_free(int node, uint64_t bytes) {
    write(fmt::format("/sys/devices/system/node/node{}/meminfo", node),
          fmt::format("Node {} MemFree: {} kB\n", node, bytes >> 10));
  }
  void heat(uint64_t from, uint64_t to) {
    trackers.decreed.samples = {{kBase + from, kBase + to, 50}};
  }

  std::unique_ptr<PagingLoop> make_loop(PagingMode mode = PagingMode::kEnforce,
                                        PagingGroup group = {.name = "g"}) {
    auto loop = std::make_unique<PagingLoop>(
        LoopEnvironment{.sysroot = sysroot,
                        .pacer = pacer,
                        .kernel = pages,
                        .trackers = trackers,
                        .tiers = {{.name = "fast", .nodes = {0}, .latency_ns = 100},
                                  {.name = "slow", .nodes = {1}, .latency_ns = 500}}},
        options);
    EXPECT_TRUE(loop->add({.pid = 1, .group = std::move(group), .mode = mode}));
    return loop;
  }

  void run(PagingLoop& loop, int rounds) {
    for (int i = 0; i < rounds; ++i) {
      pacer.sleep_until(loop.run_round(), {});
      set_free(0, 32 * kMiB - std::min(pages.bytes_on(0), 32 * kMiB));
    }
  }

  ScratchDirectory root;
  Sysroot sysroot{root.path()};
  FakePages pages;
  VirtualPacer pacer;
  DecreedSource trackers{pacer};
  LoopOptions options;
};

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
