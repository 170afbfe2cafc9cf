#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "base/history_clock.h"
#include "daemon/agent/link/backoff.h"
#include "daemon/agent/node/instances.h"
#include "daemon/agent/node/lease.h"
#include "daemon/agent/tasks/cpu_allocator.h"
#include "daemon/agent/tasks/task_dirs.h"
#include "no_more_threads.h"

namespace tierpilot::agent {
namespace {
namespace fs = std::filesystem;

TEST(CpuAllocator, DealsCpusOutOverUnits) {
  CpuAllocator cpus({0, 1, 2, 3, 4}, 2);
  auto first = cpus.take(1);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->cpus, (std::vector{0, 1}));
  auto second = cpus.take(1);
  EXPECT_EQ(second->cpus, (std::vector{2, 3, 4}));
  EXPECT_FALSE(cpus.take(1));
  cpus.give_back(*first);
  EXPECT_EQ(cpus.busy_units(), 1u);
  EXPECT_EQ(cpus.take(1)->cpus, (std::vector{0, 1}));
}

TEST(CpuAllocator, FewerCpusThanUnitsAreShared) {
  CpuAllocator cpus({6, 7}, 4);
  EXPECT_EQ(cpus.take(1)->cpus, (std::vector{6, 7}));
  EXPECT_EQ(cpus.take(3)->cpus, (std::vector{6, 7}));
  EXPECT_FALSE(cpus.take(1));
}

TEST(Lease, EndsBeforeTheCoordinatorsAndCountsFromSending) {
  Lease lease;
  EXPECT_FALSE(lease.holds(0));
  lease.granted(1'000'000'000, 10'000);
  EXPECT_EQ(lease.deadline_ns(), 10'000'000'000);  // 1 s sent + 10 s - 1 s margin
  lease.granted(2'000'000'000, 1'000);
  EXPECT_EQ(lease.deadline_ns(), 10'000'000'000) << "an answer never shortens what was promised";
  EXPECT_TRUE(lease.holds(9'999'999'999));
  EXPECT_FALSE(lease.holds(10'000'000'000));
}

TEST(Backoff, RunningWorkIsNotGivenUpForAPauseBetweenTwoTries) {
  // A coordinator that is back at any time of the lease's second half is found before its end.
  Backoff backoff(100, 5'000, 7);
  int64_t left_ms = 8'000;
  int tries = 0;
  while (left_ms > 100) {
    const int64_t waits_ms = backoff.next_ms(left_ms);
    EXPECT_LE(waits_ms, std::max<int64_t>(100, left_ms / 8));
    left_ms -= waits_ms;
    ASSERT_LT(++tries, 100) << "and nobody is flooded";
  }
  EXPECT_GE(tries, 8);
  EXPECT_GE(backoff.next_ms(), 2'500) << "with nothing to lose, the steps are long again";
}

TEST(Lease, ShortLeasesHaveAShortMargin) {
  Lease lease;
  lease.granted(0, 500);
  EXPECT_EQ(lease.deadline_ns(), 400'000'000);
  EXPECT_EQ(lease.heartbeat_ms(), 166);
}

class TaskDirsTest : public testing::Test {
 protected:
  TaskDirsTest() {
    char name[] = "/tmp/tierpilot-dirs-XXXXXX";
    root = ::mkdtemp(name);
  }
  ~TaskDirsTest() override { fs::remove_all(root); }
  fs::path make(AttemptId id, std::string_view text) {
    auto path = TaskDirs::open(root, {})->create(id);
    std::ofstream(*path / "stdout.log") << text;
    return *path;
  }
  // As often as there is something to measure.
  static size_t sweep_measured(const TaskDirs& dirs, const std::set<AttemptId>& held,
                               int64_t now_ms) {
    const size_t removed = dirs.sweep(held, now_ms);
    for (int tries = 0; tries < 3000 && dirs.measuring(); ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_FALSE(dirs.measuring());
    return removed + dirs.sweep(held, now_ms);
  }
  // Nothing else is in the folder of all attempts, after a while.
  bool only_soon(const std::set<std::string>& names) const {
    std::set<std::string> there;
    for (int tries = 0; tries < 3000; ++tries) {
      there.clear();
      for (const auto& entry : fs::directory_iterator(root / "tasks"))
        there.insert(entry.path().filename());
      if (there == names) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  fs::path root;
};

TEST_F(TaskDirsTest, ReadsLogsInBoundedChunks) {
  make({1, 1}, "hello world");
  auto dirs = *TaskDirs::open(root, {});
  auto chunk = dirs.read_log({1, 1}, "stdout", 0, 5);
  ASSERT_TRUE(chunk) << chunk.error().message;
  EXPECT_EQ(chunk->data, "hello");
  EXPECT_FALSE(chunk->end);
  chunk = dirs.read_log({1, 1}, "stdout", 5, UINT32_MAX);
  EXPECT_EQ(chunk->data, " world");
  EXPECT_TRUE(chunk->end);
  EXPECT_TRUE(dirs.read_log({1, 1}, "stdout", UINT64_MAX, 5)->data.empty());
}

TEST_F(TaskDirsTest, WhatSomebodyRemovedIsMadeAnewButNotWhatTheDaemonHasLocked) {
  auto dirs = *TaskDirs::open(root / "work", {});
  fs::remove_all(root / "work" / "tasks");
  const auto made = dirs.create({1, 1});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(fs::is_directory(*made));
  fs::remove_all(root / "work");
  EXPECT_FALSE(dirs.create({2, 1}));
  EXPECT_FALSE(fs::exists(root / "work"));
}

TEST_F(TaskDirsTest, ReadsNothingElse) {
  const auto path = make({1, 1}, "x");
  auto dirs = *TaskDirs::open(root, {});
  EXPECT_EQ(dirs.read_log({1, 1}, "../../secret", 0, 5).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(dirs.read_log({2, 1}, "stdout", 0, 5).error().code, ErrorCode::kNotFound);
  fs::create_symlink("/etc/passwd", path / "stderr.log");
  EXPECT_FALSE(dirs.read_log({1, 1}, "stderr", 0, 5)) << "a task's link is not followed";
  fs::remove(path / "stderr.log");
  ASSERT_EQ(::mkfifo((path / "stderr.log").c_str(), 0600), 0);
  EXPECT_FALSE(dirs.read_log({1, 1}, "stderr", 0, 5));
}

TEST_F(TaskDirsTest, AClockThatJumpsTakesNobodysLogs) {
  EXPECT_EQ(TaskDirs::open(root, {})->newest_ms(), 0);
  make({1, 1}, "text");
  auto dirs = *TaskDirs::open(root, {.keep_s = 3600});
  const int64_t now_ms = ::time(nullptr) * 1000L;
  EXPECT_NEAR(static_cast<double>(dirs.newest_ms()), static_cast<double>(now_ms), 60'000);
  ManualClock clock;
  clock.step_wall_ms(now_ms - clock.wall_ms());
  HistoryClock age(clock, dirs.newest_ms());
  clock.step_wall_ms(365 * 24 * 3'600'000L);
  EXPECT_EQ(dirs.sweep({}, age.now_ms()), 0u);
  for (int hour = 0; hour < 3; ++hour) {
    clock.advance_ns(3'600'000'000'000);
    dirs.sweep({}, age.now_ms());
  }
  EXPECT_FALSE(fs::exists(dirs.path_of({1, 1}))) << "it is old by now";
}

TEST_F(TaskDirsTest, SweepsOldAndSurplusButNeverHeld) {
  make({1, 1}, "old");
  make({2, 1}, "held");
  make({3, 1}, std::string(100'000, 'x'));
  const int64_t now_ms = ::time(nullptr) * 1000L;
  auto by_age = *TaskDirs::open(root, {.keep_s = 60});
  EXPECT_EQ(by_age.sweep({{2, 1}}, now_ms), 0u);
  auto by_size = *TaskDirs::open(root, {.keep_s = 60, .keep_bytes = 50'000});
  EXPECT_GE(sweep_measured(by_size, {{2, 1}}, now_ms), 1u);
  EXPECT_FALSE(fs::exists(by_age.path_of({3, 1})));
  by_age.sweep({{2, 1}}, now_ms + 120'000);
  EXPECT_FALSE(fs::exists(by_age.path_of({1, 1})));
  EXPECT_TRUE(fs::exists(by_age.path_of({2, 1})));
}

// Whoever asks for it is the daemon's event loop, which keeps the lease: threads do what takes
// long.
TEST_F(TaskDirsTest, NobodyWaitsForTheFilesOfThoseThatHaveEnded) {
  for (const AttemptId attempt : {AttemptId{1, 1}, AttemptId{2, 1}}) {
    const auto folder = make(attempt, "old") / "work";
    fs::create_directories(folder);
    for (int i = 0; i < 2'000; ++i) std::ofstream(folder / std::to_string(i)) << "left";
  }
  auto dirs = *TaskDirs::open(root, {.keep_s = 3600, .keep_bytes = 1 << 20});
  const int64_t now_ms = ::time(nullptr) * 1000L, later_ms = now_ms + 7'200'000;
  {
    const NoMoreThreads full;
    EXPECT_EQ(dirs.sweep({{1, 1}}, now_ms), 0u);
    EXPECT_TRUE(dirs.measuring());
    EXPECT_EQ(dirs.sweep({{2, 1}}, later_ms), 1u);
    EXPECT_FALSE(fs::exists(dirs.path_of({1, 1})));
    ASSERT_TRUE(dirs.create({2, 1})) << "what is left of one of that name is in nobody's way";
    EXPECT_TRUE(only_soon({"2-1", ".removed-1-1", ".removed-2-1"}));
    ASSERT_TRUE(dirs.create({2, 1})) << "nor what is still being removed";
    EXPECT_TRUE(only_soon({"2-1", ".removed-1-1", ".removed-2-1", ".removed-.removed-2-1"}));
  }
  dirs.sweep({{2, 1}}, now_ms);
  EXPECT_TRUE(only_soon({"2-1"}));
}

TEST_F(TaskDirsTest, WhatHasGrownSinceItWasMeasuredIsMeasuredAgain) {
  const auto folder = make({1, 1}, "little");
  auto dirs = *TaskDirs::open(root, {.keep_s = 3600, .keep_bytes = 50'000});
  const int64_t now_ms = ::time(nullptr) * 1000L;
  EXPECT_EQ(sweep_measured(dirs, {}, now_ms), 0u);
  std::ofstream(folder / "stdout.log") << std::string(100'000, 'x');
  dirs.mark_ended({1, 1});
  EXPECT_EQ(sweep_measured(dirs, {}, now_ms), 1u);
}

TEST_F(TaskDirsTest, WhatAnEarlierDaemonWasRemovingIsRemoved) {
  make({1, 1}, "text");
  make({2, 1}, "text");
  fs::rename(root / "tasks/1-1", root / "tasks/.removed-1-1");
  std::ofstream(root / "tasks/.removed-3-1") << "no folder";
  auto dirs = *TaskDirs::open(root, {});
  dirs.sweep({}, ::time(nullptr) * 1000L);
  EXPECT_TRUE(only_soon({"2-1", ".removed-3-1"}));
}

TEST_F(TaskDirsTest, ALongLogKeepsItsEndAndItsOffsets) {
  constexpr uint64_t kKept = 1 << 20;
  const auto path = make({1, 1}, "") / "stdout.log";
  const std::string line(1023, 'x');
  std::ofstream log(path, std::ios::app);
  for (int i = 0; i < 4096; ++i) log << line << '\n';
  log.flush();
  auto dirs = *TaskDirs::open(root, {});
  dirs.bound_logs({1, 1}, kKept);
  log << "the end" << std::flush;
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  const auto size = static_cast<uint64_t>(st.st_size);
  EXPECT_EQ(size, 4096u * 1024 + 7);
  EXPECT_LT(static_cast<uint64_t>(st.st_blocks) * 512, kKept * 3 / 2);
  std::string text;
  uint64_t offset = 0, dropped = 0;
  for (bool end = false; !end;) {
    const auto chunk = dirs.read_log({1, 1}, "stdout", offset, 256 << 10);
    ASSERT_TRUE(chunk) << chunk.error().message;
    dropped += chunk->dropped;
    text += chunk->data;
    offset += chunk->dropped + chunk->data.size();
    end = chunk->end;
  }
  EXPECT_EQ(offset, size);
  EXPECT_EQ(dropped + text.size(), size);
  EXPECT_GE(text.size(), kKept);
  EXPECT_TRUE(text.ends_with("the end"));
  EXPECT_EQ(text.find('\0'), std::string::npos);
}

TEST_F(TaskDirsTest, AnHeirKnowsTheDaemonsSinceTheLastThatRegistered) {
  auto first = Instances::take_over(root, 1, "boot");
  EXPECT_TRUE(first.predecessors().empty());
  ASSERT_TRUE(first.registered());
  Instances::take_over(root, 2, "boot");  // dies before it registers
  auto third = Instances::take_over(root, 3, "boot");
  EXPECT_EQ(third.predecessors(), (std::vector<uint64_t>{1, 2}));
  ASSERT_TRUE(third.registered());
  EXPECT_EQ(Instances::take_over(root, 4, "boot").predecessors(), std::vector<uint64_t>{3});
  EXPECT_TRUE(Instances::take_over(root, 5, "another boot").predecessors().empty());
  std::ofstream(root / "instances") << "boot\nnonsense -1 99999999999999999999999";
  EXPECT_TRUE(Instances::take_over(root, 6, "boot").predecessors().empty());
  EXPECT_TRUE(Instances::take_over(root, 7, "").predecessors().empty()) << "which boot is unknown";
}

// As on a disk that is full.
TEST_F(TaskDirsTest, AnHeirThatCannotWriteKnowsTheDaemonsBeforeItAllTheSame) {
  ASSERT_TRUE(Instances::take_over(root, 1, "boot").registered());
  fs::create_directories(root / "instances.new");
  auto second = Instances::take_over(root, 2, "boot");
  EXPECT_EQ(second.predecessors(), std::vector<uint64_t>{1});
  EXPECT_FALSE(second.registered());
  fs::remove(root / "instances.new");
  EXPECT_TRUE(second.registered());
}

TEST_F(TaskDirsTest, ALogThatATaskMadeLongEndsWhereItsTextDoes) {
  const auto path = make({1, 1}, "text") / "stdout.log";
  constexpr uint64_t kLong = uint64_t{1} << 40;
  fs::resize_file(path, kLong);
  auto dirs = *TaskDirs::open(root, {});
  const auto first = dirs.read_log({1, 1}, "stdout", 0, UINT32_MAX);
  ASSERT_TRUE(first) << first.error().message;
  const auto rest = dirs.read_log({1, 1}, "stdout", kLong / 2, UINT32_MAX);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_TRUE(rest->end);
  EXPECT_TRUE(rest->data.empty());
  EXPECT_EQ(rest->dropped, kLong / 2);
}

}  // namespace
}  // namespace tierpilot::agent
