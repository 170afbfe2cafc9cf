#include "coordinator/store/store.h"

#include <gmock/gmock.h>
#include <sys/mount.h>
#include <unistd.h>

#include <future>

#include "coordinator/store/pruning.h"
#include "coordinator/store/records.h"
#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

using ::testing::HasSubstr;

Task sample(uint64_t id, uint64_t submission) {
  Task task;
  task.id = id;
  task.submission = submission;
  task.spec.argv = {"echo", "\xff\xfe not UTF-8", std::string(300, 'x')};
  task.spec.env = {{"A", "1"}};
  task.spec.datasets = {{"d", true}};
  task.user = "uid 0";
  task.submitted_ms = 5;
  return task;
}

TEST_F(CoreTest, OfManyDecisionsOnATaskTheLastAreTold) {
  store_->write(
      [](Db& db) -> Status {
        for (uint32_t attempt = 1; attempt <= 250; ++attempt) {
          DecisionRecord decision;
          decision.attempt = {3, attempt};
          if (auto put = records::put_decision(db, decision); !put) return put;
        }
        return {};
      },
      nullptr);
  flush();
  const auto told = records::decisions(store_->reader(), 3);
  ASSERT_TRUE(told);
  ASSERT_EQ(told->size(), static_cast<size_t>(records::kMostDecisions));
  EXPECT_EQ(told->front().attempt.attempt, 151u);
  EXPECT_EQ(told->back().attempt.attempt, 250u);
}

TEST_F(CoreTest, ABugInOneAnswerOfTheStoreDoesNotKeepTheOthersFromHearing) {
  const auto nothing = [](Db&) -> Status { return {}; };
  bool heard = false;
  store_->write(nothing, [](Status) { throw std::logic_error("a bug"); });
  store_->write(nothing, [&](Status) { heard = true; });
  EXPECT_THROW(flush(), std::logic_error);
  flush();  // a fast disk has written them apart
  EXPECT_TRUE(heard);
}

TEST_F(CoreTest, StoreRoundTripsTasksAndDecisions) {
  auto task = sample(3, 2);
  task.spec.argv = {"echo", "a b", ""};
  task.exit = TaskExit{
      TaskEnd::kExited, 4, "why", 1, 2, 3, 4, {5.0, ""}, {std::nullopt, "not told"}, {{"d", 2, 9}}};
  task.spec.memory_tier = "heap:1,1";
  task.exit->memory_tier = "no effect";
  task.exit->memory = {{"page_faults", {7.0, ""}}, {"numa_hint_faults", {std::nullopt, "no"}}};
  task.served = ServedData{1, 2, 3, 4, 5, 6, {1.5, ""}, 7, 8, 9, 10, 11, 12};
  DecisionRecord decision;
  decision.attempt = {3, 1};
  decision.policy = "dqn";
  decision.candidates = {{"n", true, 0.5, 1, 2, 3, 4, 5},
                         {"m", false, std::nullopt, 0, 0, 0, 0, 0}};
  decision.encoded = {0.5f, -1.0f};
  decision.reward.reward = 0.75;
  store_->write(
      [=](Db& db) {
        records::put_task(db, task);
        records::put_decision(db, decision);
        return records::put_reward(db, decision.attempt, decision.reward);
      },
      nullptr);
  flush();
  const auto back = stored(3);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->spec.argv, task.spec.argv);
  EXPECT_EQ(back->spec.memory_tier, "heap:1,1");
  EXPECT_EQ(back->exit->memory_tier, "no effect");
  ASSERT_EQ(back->exit->memory.size(), 2u);
  EXPECT_EQ(back->exit->memory[0].second.value, 7.0);
  EXPECT_EQ(back->exit->memory[1].second.unavailable, "no");
  EXPECT_EQ(back->exit->written[0].version, 2u);
  EXPECT_EQ(back->exit->io_write_bytes.unavailable, "not told");
  EXPECT_EQ(back->served->evict_gb_per_s.value, 1.5);
  const auto decisions = records::decisions(store_->reader(), 3);
  ASSERT_TRUE(decisions);
  ASSERT_EQ(decisions->size(), 1u);
  EXPECT_EQ((*decisions)[0].candidates[0].q, 0.5);
  EXPECT_FALSE((*decisions)[0].candidates[1].q);
  EXPECT_EQ((*decisions)[0].encoded, decision.encoded);
  EXPECT_EQ((*decisions)[0].reward.reward, 0.75);
}

TEST_F(CoreTest, AnUpdateKeepsWhatATaskWasSubmittedWith) {
  auto task = sample(3, 2);
  task.spec.argv = {"echo", "once"};
  auto later = task;
  later.spec.argv.clear();
  later.state = TaskState::kRunning;
  later.node = "n";
  later.attempt = 2;
  later.started_ms = 77;
  store_->write(
      [=](Db& db) {
        records::put_task(db, task);
        return records::update_task(db, later);
      },
      nullptr);
  flush();
  const auto back = stored(3);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->spec.argv, task.spec.argv);
  EXPECT_EQ(back->state, TaskState::kRunning);
  EXPECT_EQ(back->node, "n");
  EXPECT_EQ(back->attempt, 2u);
  EXPECT_EQ(back->started_ms, 77);
  EXPECT_FALSE(back->exit);
}

TEST_F(CoreTest, StoreFiltersAndPages) {
  store_->write(
      [](Db& db) -> Status {
        for (uint64_t id = 1; id <= 10; ++id) {
          auto task = sample(id, id % 2 + 1);
          task.state = id > 5 ? TaskState::kFailed : TaskState::kQueued;
          if (auto put = records::put_task(db, task); !put) return put;
        }
        return {};
      },
      nullptr);
  flush();
  const auto ids = [&](records::TaskFilter filter) {
    std::vector<uint64_t> out;
    const auto tasks = records::tasks(store_->reader(), filter);
    for (const auto& task : *tasks) out.push_back(task.id);
    return out;
  };
  using Ids = std::vector<uint64_t>;
  EXPECT_EQ(ids({std::nullopt, 0, 8, 500}), (Ids{9, 10}));
  EXPECT_EQ(ids({std::nullopt, 0, 0, 3}), (Ids{1, 2, 3}));
  EXPECT_EQ(ids({TaskState::kFailed, 0, 7, 500}), (Ids{8, 9, 10}));
  EXPECT_EQ(ids({std::nullopt, 1, 2, 500}), (Ids{4, 6, 8, 10}));
  EXPECT_EQ(ids({TaskState::kQueued, 2, 0, 500}), (Ids{1, 3, 5}));
}

TEST_F(CoreTest, StoreFindsTasksOfEveryState) {
  constexpr uint64_t kStates = 7;
  store_->write(
      [](Db& db) -> Status {
        for (uint64_t id = 1; id <= 3 * kStates; ++id) {
          auto task = sample(id, 1);
          if (auto put = records::put_task(db, task); !put) return put;
          task.state = static_cast<TaskState>(id % kStates);
          if (auto put = records::update_task(db, task); !put) return put;
        }
        return {};
      },
      nullptr);
  flush();
  for (uint64_t state = 0; state < kStates; ++state) {
    const auto found =
        records::tasks(store_->reader(), {static_cast<TaskState>(state), 0, kStates, 500});
    ASSERT_TRUE(found) << found.error().message;
    ASSERT_EQ(found->size(), 2u);
    for (const auto& task : *found) EXPECT_EQ(task.id % kStates, state);
  }
  EXPECT_EQ(records::active_tasks(store_->reader())->size(), 12u);
}

TEST_F(CoreTest, WhatIsWrittenFirstGoesBeforeAllThatWaits) {
  std::promise<void> all_are_written;
  auto go = all_are_written.get_future().share();
  std::string order;
  const auto note = [&](char what) {
    return [&order, what](Db&) -> Status {
      order += what;
      return {};
    };
  };
  store_->write([go](Db&) -> Status { return go.wait(), Status(); }, nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // until that one is being committed
  store_->write(note('b'), nullptr);
  store_->write(note('c'), nullptr);
  store_->write_first(note('a'), nullptr);
  all_are_written.set_value();
  flush();
  EXPECT_EQ(order, "abc");
}

TEST_F(CoreTest, HistoryIsFoundByTimeInBoundedPages) {
  constexpr uint64_t kTasks = 12'000;
  store_->write(
      [](Db& db) -> Status {
        for (uint64_t id = 1; id <= kTasks; ++id) {
          auto task = sample(id, 1);
          task.submitted_ms = static_cast<int64_t>(id);
          if (id == 11'900) task.submitted_ms = 5;  // the clock was put back
          if (auto put = records::put_task(db, task); !put) return put;
        }
        return {};
      },
      nullptr);
  flush();
  std::vector<uint64_t> found;
  int pages = 0, empty = 0;
  records::HistoryFilter filter{.from_ms = 11'800, .until_ms = 11'950, .limit = 100};
  do {
    const auto page = records::history(store_->reader(), filter);
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_LE(page->tasks.size(), 100u);
    for (const auto& task : page->tasks) found.push_back(task.id);
    ++pages;
    empty += page->tasks.empty();
    filter.after = page->next;
  } while (filter.after != 0 && pages < 100);
  EXPECT_EQ(found.size(), 149u);
  EXPECT_EQ(found.front(), 11'800u);
  EXPECT_EQ(found.back(), 11'949u);
  EXPECT_GE(empty, 2) << "a call must not look through everything";
  EXPECT_LE(pages, 6);
}

TEST_F(CoreTest, APageOfTasksEndsWhereItIsLarge) {
  store_->write(
      [](Db& db) -> Status {
        for (uint64_t id = 1; id <= 5; ++id) {
          auto task = sample(id, id);
          task.spec.env = {{"LONG", std::string(1000, 'x')}};
          if (auto put = records::put_task(db, task); !put) return put;
        }
        return {};
      },
      nullptr);
  flush();
  EXPECT_EQ(records::tasks(store_->reader(), {})->size(), 5u);
  EXPECT_EQ(records::tasks(store_->reader(), {.most_bytes = 2000})->size(), 2u);
  EXPECT_EQ(records::tasks(store_->reader(), {.after = 2, .most_bytes = 0})->size(), 1u);
}

TEST_F(CoreTest, StorePrunesWholeOldJobsButKeepsTheLast) {
  store_->write(
      [](Db& db) -> Status {
        for (uint64_t id = 1; id <= 4; ++id) {
          auto task = sample(id, id);
          task.state = id == 2 ? TaskState::kQueued : TaskState::kSucceeded;
          task.finished_ms = 100;
          if (auto put = records::put_task(db, task); !put) return put;
          if (auto put =
                  records::put_receipt(db, {"u", "r" + std::to_string(id)}, {id, id, 1, "x"});
              !put)
            return put;
          DecisionRecord decision;
          decision.attempt = {id, 1};
          if (auto put = records::put_decision(db, decision); !put) return put;
          if (auto put = records::put_reward(db, decision.attempt, {}); !put) return put;
        }
        records::PruneRound round{.finished_before_ms = 101};
        Result<bool> more = true;
        while (more && *more) more = records::prune(db, round, 2);
        return more ? Status() : Status(tl::unexpected(more.error()));
      },
      nullptr);
  flush();
  EXPECT_FALSE(stored(1));
  EXPECT_TRUE(stored(2));
  EXPECT_FALSE(stored(3));
  EXPECT_TRUE(stored(4));
  EXPECT_FALSE(*records::receipt(store_->reader(), {"u", "r1"}));
  EXPECT_TRUE(*records::receipt(store_->reader(), {"u", "r4"}));
  EXPECT_TRUE(records::decisions(store_->reader(), 1)->empty());
  EXPECT_EQ(records::decisions(store_->reader(), 4)->size(), 1u);
  auto rewards = store_->reader().query("SELECT COUNT(*) FROM rewards");
  ASSERT_TRUE(rewards && *rewards->step());
  EXPECT_EQ(rewards->integer(0), 2);
}

TEST_F(CoreTest, OneBadChangeDoesNotSpoilItsBatch) {
  std::vector<bool> ok;
  for (int i = 0; i < 3; ++i)
    store_->write(
        [i](Db& db) -> Status {
          if (auto put = records::put_setting(db, "k" + std::to_string(i), i); !put) return put;
          if (i == 1) return fail(ErrorCode::kInvalid, "no");
          return {};
        },
        [&](Status status) { ok.push_back(status.has_value()); });
  ASSERT_TRUE(posts_.run_until([&] { return ok.size() == 3; }));
  EXPECT_EQ(ok, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(*records::setting(store_->reader(), "k0", -1), 0);
  EXPECT_EQ(*records::setting(store_->reader(), "k1", -1), -1);
  EXPECT_EQ(*records::setting(store_->reader(), "k2", -1), 2);
}

// Some 260 pages of the log.
Status write_a_mebibyte(Store& store, PostQueue& posts, int64_t id) {
  std::optional<Status> done;
  store.write(
      [id](Db& db) -> Status {
        auto put = db.query("INSERT OR REPLACE INTO rewards VALUES(?, zeroblob(1048576))");
        return put ? put->bind(id).run() : Status(tl::unexpected(put.error()));
      },
      [&](Status status) { done = status; });
  EXPECT_TRUE(posts.run_until([&] { return done.has_value(); }));
  return *done;
}

TEST_F(CoreTest, ALongLogBeginsAnewAndLosesNothing) {
  constexpr int64_t kMebibytes = 160;
  for (int64_t i = 0; i < kMebibytes; ++i) {
    ASSERT_TRUE(write_a_mebibyte(*store_, posts_, i % 8));
    store_->write([i](Db& db) { return records::put_setting(db, "k" + std::to_string(i), i); },
                  nullptr);
  }
  flush();
  EXPECT_LT(std::filesystem::file_size(directory_ / "tierpilot.db-wal"), uint64_t{96} << 20);
  restart();
  for (int64_t i = 0; i < kMebibytes; ++i)
    EXPECT_EQ(*records::setting(store_->reader(), "k" + std::to_string(i), -1), i);
  auto check = store_->reader().query("PRAGMA integrity_check");
  ASSERT_TRUE(check && *check->step());
  EXPECT_EQ(check->text(0), "ok");
}

TEST_F(CoreTest, ALogThatFindsNoRoomBeginsAnew) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const auto small = directory_ / "small";
  std::filesystem::create_directories(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=8m") != 0)
    GTEST_SKIP() << "cannot mount a tmpfs here";
  for (int run = 0; run < 2; ++run) {  // the first one leaves a database that has the room
    auto opened = Store::open(small, [this](auto work) { posts_.post(std::move(work)); });
    ASSERT_TRUE(opened) << opened.error().message;
    for (int i = 0; i < (run == 0 ? 3 : 40); ++i) {
      const auto written = write_a_mebibyte(**opened, posts_, 1);
      EXPECT_TRUE(written) << "after " << i << ": " << written.error().message;
    }
  }
  ::umount2(small.c_str(), MNT_DETACH);
}

TEST_F(CoreTest, SecondCoordinatorIsRefused) {
  auto second = Store::open(directory_, [](auto) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConflict);
  EXPECT_THAT(second.error().message, HasSubstr("another coordinator"));
}

TEST_F(CoreTest, AFullDiskLosesNothingAndHeals) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to mount a small tmpfs";
  const auto small = directory_ / "small";
  std::filesystem::create_directories(small);
  if (::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=2m") != 0)
    GTEST_SKIP() << "cannot mount a tmpfs here";
  {
    auto opened = Store::open(small, [this](auto work) { posts_.post(std::move(work)); });
    ASSERT_TRUE(opened) << opened.error().message;
    auto& store = **opened;
    uint64_t accepted = 0;
    std::optional<Error> refused;
    for (uint64_t id = 1; id < 3000 && !refused; ++id) {
      auto task = sample(id, id);
      task.spec.argv.push_back(std::string(4000, 'y'));
      std::optional<Status> done;
      store.write([task](Db& db) { return records::put_task(db, task); },
                  [&](Status status) { done = status; });
      ASSERT_TRUE(posts_.run_until([&] { return done.has_value(); }));
      if (*done)
        accepted = id;
      else
        refused = done->error();
    }
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code, ErrorCode::kExhausted) << refused->message;
    EXPECT_THAT(refused->message, HasSubstr(small.string()));
    EXPECT_FALSE(store.trouble().empty());
    EXPECT_EQ(*records::last_task_id(store.reader()), accepted);
    ASSERT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", MS_REMOUNT, "size=16m"), 0);
    std::optional<Status> done;
    store.write([](Db& db) { return records::put_setting(db, "again", 1); },
                [&](Status status) { done = status; });
    ASSERT_TRUE(posts_.run_until([&] { return done.has_value(); }));
    EXPECT_TRUE(*done) << done->error().message;
    EXPECT_TRUE(store.trouble().empty());
  }
  ::umount2(small.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace tierpilot::testing
