#include "tests/bench/store/old_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>

#include "base/clock.h"
#include "coordinator/store/records.h"
#include "coordinator/store/store.h"

namespace tierpilot::bench {
namespace {

constexpr uint64_t kTasksPerSubmission = 10, kDagTasks = 10'000, kTasksPerCommit = 5'000;
constexpr int64_t kYearMs = 365LL * 86'400'000;

Task task_of(uint64_t id, uint64_t submission, TaskState state) {
  Task task;
  task.id = id;
  task.submission = submission;
  task.state = state;
  task.user = "uid 0";
  task.submitted_ms = system_clock().wall_ms();
  task.spec.argv = {"sh", "-c", "exec true"};
  task.spec.env = {{"HOME", "/root"}};
  return task;
}

Status put_ended(Db& db, uint64_t id) {
  auto task = task_of(id, (id - 1) / kTasksPerSubmission + 1, TaskState::kSucceeded);
  task.submitted_ms -= kYearMs;
  task.started_ms = task.finished_ms = task.submitted_ms + 100;
  task.node = "n1";
  task.attempt = 1;
  task.exit = TaskExit{.how = TaskEnd::kExited};
  task.served = ServedData{};
  if (auto put = records::put_task(db, task); !put) return put;
  DecisionRecord decision;
  decision.attempt = {id, 1};
  decision.policy = "dqn";
  decision.node = "n1";
  decision.candidates.assign(8, {"n1", true, 0.5, 1, 2, 3, 4, 5});
  if (auto put = records::put_decision(db, decision); !put) return put;
  if (auto put = records::put_reward(db, decision.attempt, {.reward = 0.5}); !put) return put;
  if (id % kTasksPerSubmission != 1) return {};
  // As random as a client's.
  return records::put_receipt(db, {task.user, fmt::format("{:016x}", id * 0x9e3779b97f4a7c15)},
                              {task.submission, id, kTasksPerSubmission, std::string(64, 'd')});
}

Status put_waiting(Db& db, uint64_t first_id, uint64_t first_submission, uint64_t i) {
  const bool is_first = i % kDagTasks == 0;
  auto task = task_of(first_id + i, first_submission + i / kDagTasks,
                      is_first ? TaskState::kQueued : TaskState::kWaiting);
  task.spec.name = fmt::format("t{}", i % kDagTasks);
  if (!is_first) task.spec.after = {"t0"};
  return records::put_task(db, task);
}

}  // namespace

void write_store(const std::filesystem::path& state_dir, uint64_t ended, uint64_t waiting) {
  std::mutex mutex;
  std::string failed;
  {
    auto store = Store::open(state_dir, [](auto callbacks) { callbacks(); });
    if (!store) throw std::runtime_error(store.error().message);
    const auto note = [&](const Status& status) {
      const std::lock_guard guard(mutex);
      if (!status) failed = status.error().message;
    };
    const auto in_commits = [&](uint64_t count, auto put) {
      for (uint64_t from = 0; from < count; from += kTasksPerCommit)
        (*store)->write(
            [=](Db& db) -> Status {
              for (uint64_t i = from; i < std::min(from + kTasksPerCommit, count); ++i)
                if (auto done = put(db, i); !done) return done;
              return {};
            },
            note);
    };
    in_commits(ended, [](Db& db, uint64_t i) { return put_ended(db, i + 1); });
    in_commits(waiting, [ended](Db& db, uint64_t i) {
      return put_waiting(db, ended + 1, ended / kTasksPerSubmission + 2, i);
    });
    (*store)->write(
        [](Db& db) { return records::put_setting(db, "history_now_ms", system_clock().wall_ms()); },
        note);
  }
  if (!failed.empty()) throw std::runtime_error(failed);
}

uint64_t ended_tasks(const std::filesystem::path& state_dir) {
  auto db = Db::open((state_dir / "tierpilot.db").string());
  if (!db) throw std::runtime_error(db.error().message);
  auto count = db->query("SELECT COUNT(*) FROM tasks WHERE state >= 4");
  if (!count || !*count->step()) throw std::runtime_error("cannot count the tasks");
  return static_cast<uint64_t>(count->integer(0));
}

}  // namespace tierpilot::bench
