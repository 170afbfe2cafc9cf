// How long ended tasks and their receipts are remembered, whatever the wall clock does.
#include "coordinator/core/outcomes/history.h"

#include <gtest/gtest.h>

#include "coordinator/store/records.h"
#include "core_fixture.h"

namespace tierpilot::testing {
namespace {

constexpr int64_t kHourNs = 3'600'000'000'000, kDayMs = 86'400'000, kKeepMs = 30 * kDayMs;

class HistoryTest : public CoreTest {
 protected:
  void begin() {
    history_ = std::make_unique<History>(*state_, [this](int64_t us, auto then) {
      pauses_us_.push_back(us);
      posts_.post(std::move(then));
    });
    ASSERT_TRUE(history_->begin(kKeepMs));
  }
  void restart_with_history() {
    history_.reset();
    restart();
    begin();
  }
  // One round, if it is time for one.
  void round() {
    history_->tick();
    ASSERT_TRUE(posts_.run_until([&] { return !history_->pruning(); }));
    flush();
  }
  void pass(int64_t hours) {
    for (int64_t i = 0; i < hours; i += 6) {
      clock_.advance_ns(6 * kHourNs);
      round();
    }
  }
  // Ended, and another behind it: the last submit is never forgotten.
  void run_one(const std::string& request) {
    const auto receipt = submit({spec()}, request);
    ASSERT_TRUE(receipt);
    if (!state_->registry.find("n1")) join("n1");
    ASSERT_TRUE(exit("n1", assign(receipt->first_task, "n1"), success()));
    ASSERT_TRUE(submit({spec()}, request + "-last"));
  }
  bool remembers(const std::string& request) {
    return records::receipt(store_->reader(), {"tester", request})->has_value();
  }
  // Ended long ago, each submitted alone; but `waiting`, which has not ended.
  void put_old_tasks(uint64_t count, uint64_t waiting = 0, uint64_t first = 1) {
    const int64_t long_ago_ms = clock_.wall_ms() - 2 * kKeepMs;
    store_->write(
        [&](Db& db) -> Status {
          for (uint64_t id = first; id < first + count; ++id) {
            Task task;
            task.id = task.submission = id;
            task.spec = spec();
            task.state = id == waiting ? TaskState::kQueued : TaskState::kSucceeded;
            task.submitted_ms = task.finished_ms = long_ago_ms;
            if (auto put = records::put_task(db, task); !put) return put;
            if (auto put =
                    records::put_receipt(db, {"tester", std::to_string(id)}, {id, id, 1, ""});
                !put)
              return put;
          }
          return records::put_setting(db, "history_now_ms", clock_.wall_ms());
        },
        nullptr);
    flush();
  }
  uint64_t count(const char* sql) {
    auto query = store_->reader().query(sql);
    EXPECT_TRUE(query && *query->step());
    return static_cast<uint64_t>(query->integer(0));
  }

  std::unique_ptr<History> history_;
  std::vector<int64_t> pauses_us_;
};

TEST_F(HistoryTest, IsForgottenInTime) {
  begin();
  run_one("r");
  pass(29 * 24);
  EXPECT_TRUE(remembers("r"));
  pass(2 * 24);
  EXPECT_FALSE(remembers("r"));
  EXPECT_FALSE(stored(1));
  EXPECT_TRUE(stored(2)) << "it has not ended";
}

TEST_F(HistoryTest, AJumpOfTheWallClockForgetsNothing) {
  begin();
  run_one("r");
  round();
  clock_.step_wall_ms(365 * kDayMs);
  pass(14 * 24);
  EXPECT_TRUE(remembers("r"));
  clock_.step_wall_ms(-365 * kDayMs);  // somebody sets it right
  pass(24);
  EXPECT_TRUE(remembers("r"));
  pass(30 * 24);
  EXPECT_FALSE(remembers("r"));
}

TEST_F(HistoryTest, AJumpWhileItIsStoppedForgetsNothing) {
  begin();
  run_one("r");
  round();
  clock_.step_wall_ms(365 * kDayMs);
  restart_with_history();
  pass(24);
  EXPECT_TRUE(remembers("r"));
  clock_.step_wall_ms(-2 * 365 * kDayMs);
  restart_with_history();
  pass(24);
  EXPECT_TRUE(remembers("r"));
}

TEST_F(HistoryTest, AStoreOfAnOlderProgramIsNotForgottenByAWrongClock) {
  run_one("r");  // and no round, which would note the time
  clock_.step_wall_ms(365 * kDayMs);
  begin();
  pass(24);
  EXPECT_TRUE(remembers("r"));
}

TEST_F(HistoryTest, ARoundHasNoEndBeforeAllThatIsOldIsForgotten) {
  put_old_tasks(12'000, 5'000);
  restart_with_history();
  round();
  EXPECT_EQ(count("SELECT COUNT(*) FROM tasks"), 2u) << "the one that has not ended, and the last";
  EXPECT_EQ(count("SELECT COUNT(*) FROM receipts"), 2u);
}

// Each slice is in the way of somebody's commit, but must not fall behind what arrives.
TEST_F(HistoryTest, IsForgottenWithoutHurryWhileFewTasksArrive) {
  put_old_tasks(2'000, 0, 1'000'001);
  restart_with_history();
  const auto slices = [&](size_t many) {
    ASSERT_TRUE(posts_.run_until([&] { return pauses_us_.size() >= many; }));
  };
  history_->tick();
  slices(1);
  EXPECT_GE(pauses_us_.back(), 2'000);
  EXPECT_LE(pauses_us_.back(), 100'000) << "what was forgotten earlier is no work";
  state_->last_task += 10'000;
  slices(2);
  EXPECT_EQ(pauses_us_.back(), 1'000);
  slices(3);
  EXPECT_GE(pauses_us_.back(), 5'000) << "the slice was twice as large, and none arrived";
}

TEST_F(HistoryTest, ASliceIsBoundedAndALargeSubmitTakesSeveral) {
  constexpr uint64_t kTasks = 1'000, kMost = 64;
  std::vector<uint64_t> left;
  store_->write(
      [&](Db& db) -> Status {
        for (uint64_t id = 1; id <= kTasks + 1; ++id) {
          Task task;
          task.id = id;
          task.submission = id <= kTasks ? 1 : 2;
          task.spec = spec();
          task.state = TaskState::kSucceeded;
          if (auto put = records::put_task(db, task); !put) return put;
        }
        records::PruneRound round{.finished_before_ms = 1};
        for (Result<bool> more = true; more && *more;) {
          more = records::prune(db, round, kMost);
          if (!more) return tl::unexpected(more.error());
          auto rows = db.query("SELECT COUNT(*) FROM tasks");
          if (!rows->step()) return fail(ErrorCode::kIo, "cannot count");
          left.push_back(static_cast<uint64_t>(rows->integer(0)));
        }
        return {};
      },
      nullptr);
  flush();
  ASSERT_FALSE(left.empty());
  uint64_t before = kTasks + 1;
  for (const uint64_t now : left) {
    EXPECT_LE(before - now, kMost);
    before = now;
  }
  EXPECT_EQ(left.back(), 1u);
}

}  // namespace
}  // namespace tierpilot::testing
