#include "coordinator/store/pruning.h"

#include <algorithm>
#include <optional>

#include "coordinator/store/records.h"
#include "coordinator/store/rows.h"
#include "model/attempt.h"

namespace tierpilot::records {
namespace {

// Looking at a submit costs about as much as forgetting so many tasks, and some for each of its
// own.
uint64_t cost_of_a_look(uint64_t tasks) {
  return 4 + tasks / 16;
}

struct Front {
  uint64_t task = 0;  // the first behind what has been looked at
  uint64_t submission = 0;
  int64_t submitted_ms = 0;
};

Result<std::optional<Front>> front(Db& db, uint64_t after) {
  auto query =
      db.query("SELECT id, submission, submitted_ms FROM tasks WHERE id > ? ORDER BY id LIMIT 1");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, after);
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::optional<Front>();
  return std::optional(Front{as_unsigned(*query, 0), as_unsigned(*query, 1), query->integer(2)});
}

// Of one row with one number.
Result<uint64_t> read_one(Result<Query> query) {
  if (!query) return tl::unexpected(query.error());
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  return as_unsigned(*query, 0);
}

Result<uint64_t> last_task_of(Db& db, uint64_t submission) {
  auto query = db.query("SELECT MAX(id) FROM tasks WHERE submission = ?");
  if (query) bind_unsigned(*query, submission);
  return read_one(std::move(query));
}

Result<bool> is_old(Db& db, uint64_t submission, int64_t finished_before_ms) {
  auto query = db.query(
      "SELECT NOT EXISTS(SELECT 1 FROM tasks WHERE submission = ? AND (state < 4 OR finished_ms >= "
      "?))");
  if (query) bind_unsigned(*query, submission).bind(finished_before_ms);
  const auto old = read_one(std::move(query));
  if (!old) return tl::unexpected(old.error());
  return *old != 0;
}

Status run_between(Db& db, const char* sql, uint64_t first, uint64_t last) {
  auto query = db.query(sql);
  if (!query) return tl::unexpected(query.error());
  return bind_unsigned(bind_unsigned(*query, first), last).run();
}

Status forget_receipt(Db& db, uint64_t submission) {
  auto query = db.query("DELETE FROM receipts WHERE submission = ?");
  if (!query) return tl::unexpected(query.error());
  return bind_unsigned(*query, submission).run();
}

Status forget(Db& db, uint64_t first, uint64_t last) {
  for (const char* sql : {"DELETE FROM decisions_by_id WHERE id BETWEEN ? AND ?",
                          "DELETE FROM rewards WHERE id BETWEEN ? AND ?"})
    if (auto done = run_between(db, sql, first_attempt_key(first), last_attempt_key(last)); !done)
      return done;
  for (const char* sql : {"DELETE FROM job_progress WHERE task BETWEEN ? AND ?",
                          "DELETE FROM safe_checkpoints WHERE task BETWEEN ? AND ?"})
    if (auto done = run_between(db, sql, first, last); !done) return done;
  return run_between(db, "DELETE FROM tasks WHERE id BETWEEN ? AND ?", first, last);
}

}  // namespace

Result<bool> prune(Db& db, PruneRound& round, uint64_t most_tasks) {
  const auto last = last_submission(db);
  if (!last) return tl::unexpected(last.error());
  for (uint64_t spent = 0; spent < most_tasks;) {
    const auto at = front(db, round.after);
    if (!at) return tl::unexpected(at.error());
    if (!*at || (*at)->submission == *last) return false;
    const auto [first, submission, submitted_ms] = **at;
    const bool young = submitted_ms >= round.finished_before_ms;
    if (young && !round.to_the_end) return false;
    const auto end = last_task_of(db, submission);
    if (!end) return tl::unexpected(end.error());
    if (submission != round.submission) {
      spent += cost_of_a_look(*end - first + 1);
      const auto old =
          young ? Result<bool>(false) : is_old(db, submission, round.finished_before_ms);
      if (!old) return tl::unexpected(old.error());
      if (!*old) {
        round.after = *end;
        continue;
      }
      if (auto done = forget_receipt(db, submission); !done) return tl::unexpected(done.error());
      round.submission = submission;
    }
    const uint64_t until = std::min(*end, first + most_tasks - 1);
    if (auto done = forget(db, first, until); !done) return tl::unexpected(done.error());
    spent += until - first + 1;
    round.after = until;
  }
  return true;
}

}  // namespace tierpilot::records
