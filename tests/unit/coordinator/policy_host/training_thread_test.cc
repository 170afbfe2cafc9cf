#include "coordinator/policy_host/training_thread.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <atomic>

namespace tierpilot {
namespace {

using namespace std::chrono_literals;

double thread_cpu_s() {
  timespec used{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

// Always has something to train on, and 2 ms of work in each batch.
class BusyLearner : public Learner {
 public:
  struct Seen {
    std::atomic<double> cpu_s = 0;
    std::atomic<int> batches = 0;
    std::atomic<uint64_t> decisions = 0;
    std::atomic<uint64_t> rewards = 0;
    std::atomic<uint64_t> ends = 0;
    std::atomic<int> scheduler = -1;
  };
  explicit BusyLearner(Seen& seen) : seen_(seen) {}

  void decided(uint64_t, const View&, size_t) override { ++seen_.decisions; }
  void told(uint64_t, const Outcome& outcome) override {
    ++(ends(outcome) ? seen_.ends : seen_.rewards);
  }
  bool ready() const override { return true; }
  void train_batch() override {
    const double begin_s = thread_cpu_s();
    while (thread_cpu_s() - begin_s < 0.002) {
    }
    seen_.cpu_s = thread_cpu_s();
    seen_.scheduler = ::sched_getscheduler(0);
    ++seen_.batches;
  }
  void copy_weights() override {}
  void copy_weights_if_due() override {}
  LearnerCounters counters() const override { return {}; }
  std::string save() const override { return {}; }
  Status restore(std::string_view) override { return {}; }
  std::string save_weights() const override { return {}; }
  Status restore_weights(std::string_view) override { return {}; }

 private:
  Seen& seen_;
};

// What it needs is there at the second try only.
class LateLearner final : public BusyLearner {
 public:
  using BusyLearner::BusyLearner;
  void begin() override {
    if (tries_++ == 0) throw std::runtime_error("not there");
  }

 private:
  int tries_ = 0;
};

struct Run {
  double share = 0;  // of a core
  int scheduler = -1;
};

// Each is followed by its rest, but the last: of few, however long they take, the share is higher.
constexpr int kFewestBatches = 6;

Run train_for(std::chrono::milliseconds time, TrainingPace pace) {
  BusyLearner::Seen seen;
  std::vector<TrainingThread::NamedLearner> learners;
  learners.push_back({"busy", std::make_unique<BusyLearner>(seen)});
  const auto begin = std::chrono::steady_clock::now();
  double wall_s = 0;
  {
    TrainingThread thread(std::move(learners), {}, pace, VersionArchive({}, 0));
    do {
      std::this_thread::sleep_for(time);
    } while (seen.batches < kFewestBatches);
    wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return {seen.cpu_s / wall_s, seen.scheduler};
}

TEST(TrainingThread, WhatCouldNotBeginLearnsOnceItCan) {
  BusyLearner::Seen seen;
  std::vector<TrainingThread::NamedLearner> learners;
  learners.push_back({"late", std::make_unique<LateLearner>(seen), false});
  TrainingThread thread(std::move(learners), {}, {.nice = 0}, VersionArchive({}, 0));
  thread.wake("late");
  while (!thread.status("late").failed) std::this_thread::sleep_for(1ms);
  EXPECT_EQ(seen.batches, 0);
  thread.wake("late");
  while (seen.batches == 0) std::this_thread::sleep_for(1ms);
  while (thread.status("late").failed) std::this_thread::sleep_for(1ms);
}

TEST(TrainingThread, TakesNoMoreOfACoreThanItMay) {
  const auto run = train_for(600ms, {.nice = 0, .cpu_share = 0.1});
  EXPECT_LT(run.share, 0.15);
  EXPECT_GT(run.share, 0);
}

TEST(TrainingThread, LearnsFromABurstAndFromASampleOfWhatIsMore) {
  BusyLearner::Seen seen;
  std::vector<TrainingThread::NamedLearner> learners;
  learners.push_back({"busy", std::make_unique<BusyLearner>(seen)});
  const auto view = std::make_shared<const View>();
  const auto begin = std::chrono::steady_clock::now();
  uint64_t sent = 0;
  {
    TrainingThread thread(std::move(learners), {},
                          {.nice = 0, .cpu_share = 0.01, .decisions_per_s = 100},
                          VersionArchive({}, 0));
    for (; sent < 500; ++sent) thread.decided(sent, view, 0);
    while (seen.decisions < 500) std::this_thread::sleep_for(1ms);  // none is left out of a burst
    while (std::chrono::steady_clock::now() - begin < 300ms || sent < 5000) {
      thread.decided(sent++, view, 0);
      std::this_thread::sleep_for(50us);
    }
  }
  const auto passed_s =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  EXPECT_LE(static_cast<double>(seen.decisions), 1025 + 100 * passed_s);
  EXPECT_GE(seen.decisions, 1000u);
}

TEST(TrainingThread, HearsNothingMoreOfDecisionsLeftOut) {
  BusyLearner::Seen seen;
  std::vector<TrainingThread::NamedLearner> learners;
  learners.push_back({"busy", std::make_unique<BusyLearner>(seen)});
  const auto view = std::make_shared<const View>();
  constexpr uint64_t kTold = 5000, kOfAnEarlierRun = 1'000'000;
  {
    TrainingThread thread(std::move(learners), {}, {.nice = 0, .decisions_per_s = 0.001},
                          VersionArchive({}, 0));
    for (uint64_t id = 0; id < kTold; ++id) thread.decided(id, view, 0);
    for (uint64_t id = 0; id < kTold; ++id) thread.told(id, DataServed{});
    for (uint64_t id = 0; id < kTold; ++id)
      thread.told(id, id % 2 ? Outcome(Finished{1}) : Abandoned{});
    thread.told(kOfAnEarlierRun, Finished{1});
    while (seen.ends <= seen.decisions) std::this_thread::sleep_for(1ms);
  }
  EXPECT_LT(seen.decisions, kTold / 2);
  EXPECT_EQ(seen.rewards, seen.decisions);
  EXPECT_EQ(seen.ends, seen.decisions + 1);
}

TEST(TrainingThread, TrainsWhenNobodyElseWantsTheCoreWhereItIsTold) {
  const auto run = train_for(50ms, {.nice = 10, .when_idle = true, .cpu_share = 0.5});
  if (run.scheduler != SCHED_IDLE) GTEST_SKIP() << "SCHED_IDLE is refused here";
  EXPECT_EQ(run.scheduler, SCHED_IDLE);
}

}  // namespace
}  // namespace tierpilot
