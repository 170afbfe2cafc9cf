#include "coordinator/store/records.h"

#include <fmt/format.h>

#include "coordinator/model_json.h"
#include "coordinator/store/rows.h"

namespace tierpilot::records {
namespace {

constexpr const char* kTaskColumns =
    "id, submission, state, reason, node, attempt, submitted_ms, started_ms, finished_ms, user, "
    "policy, cancel_asked, spec, exit, served, forgiven, rank, restarts, share, boot_id, "
    "clock_offset_ms";

// Of what goes on from there.
const std::string& select_tasks() {
  static const std::string sql = std::string("SELECT ") + kTaskColumns + " FROM tasks ";
  return sql;
}

Result<Task> read_task(const Query& row) {
  Task task;
  task.id = as_unsigned(row, 0);
  task.submission = as_unsigned(row, 1);
  task.state = static_cast<TaskState>(row.integer(2));
  task.reason = row.text(3);
  task.node = row.text(4);
  task.attempt = static_cast<uint32_t>(row.integer(5));
  task.submitted_ms = row.integer(6);
  task.started_ms = row.integer(7);
  task.finished_ms = row.integer(8);
  task.user = row.text(9);
  task.policy = row.text(10);
  task.cancel_asked = row.integer(11) != 0;
  task.forgiven = static_cast<uint32_t>(row.integer(15));
  auto spec = parse_spec(row.text(12));
  if (!spec) return tl::unexpected(spec.error());
  task.spec = std::move(*spec);
  if (!row.is_null(13)) {
    auto exit = parse_exit(row.text(13));
    if (!exit) return tl::unexpected(exit.error());
    task.exit = std::move(*exit);
  }
  if (!row.is_null(14)) {
    auto served = parse_served(row.text(14));
    if (!served) return tl::unexpected(served.error());
    task.served = std::move(*served);
  }
  if (!row.is_null(16)) {
    auto rank = parse_rank(row.text(16));
    if (!rank) return tl::unexpected(rank.error());
    task.rank = std::move(*rank);
  }
  task.restarts = static_cast<uint32_t>(row.integer(17));
  if (!row.is_null(19)) task.times_by = ClockOffset{as_unsigned(row, 19), row.integer(20)};
  if (row.is_null(18)) return task;
  auto share = parse_unit_share(row.text(18));
  if (!share) return tl::unexpected(share.error());
  task.share = *share;
  return task;
}

void bind_times_by(Query& query, const Task& task) {
  const auto by = task.times_by.value_or(ClockOffset{});
  bind_unsigned(query, by.boot_id).bind(by.ms);
}

Result<uint64_t> read_max(Db& db, const char* sql) {
  auto query = db.query(sql);
  if (!query) return tl::unexpected(query.error());
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  return as_unsigned(*query, 0);
}

}  // namespace

Status put_task(Db& db, const Task& task) {
  const std::string spec = spec_text(task.spec);
  auto query = db.query(
      "INSERT OR REPLACE INTO tasks(id, submission, state, reason, node, attempt, submitted_ms, "
      "started_ms, finished_ms, user, policy, cancel_asked, spec, exit, served, forgiven, rank, "
      "restarts, share, boot_id, clock_offset_ms) "
      "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,NULLIF(?,''),NULLIF(?,''),?,NULLIF(?,''),?,NULLIF(?,''),"
      "NULLIF(?,0),?)");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, task.id);
  bind_unsigned(*query, task.submission);
  query->bind(static_cast<int64_t>(task.state)).bind(task.reason).bind(task.node);
  query->bind(int64_t{task.attempt}).bind(task.submitted_ms).bind(task.started_ms);
  query->bind(task.finished_ms).bind(task.user).bind(task.policy);
  query->bind(int64_t{task.cancel_asked}).bind_borrowed(spec);
  query->bind(task.exit ? exit_text(*task.exit) : std::string());
  query->bind(task.served ? served_text(*task.served) : std::string());
  query->bind(int64_t{task.forgiven});
  query->bind(task.rank ? rank_text(*task.rank) : std::string()).bind(int64_t{task.restarts});
  query->bind(task.share ? share_text(*task.share) : std::string());
  bind_times_by(*query, task);
  return query->run();
}

Status update_task(Db& db, const Task& task) {
  const auto exit = task.exit ? exit_text(*task.exit) : std::string();
  const auto served = task.served ? served_text(*task.served) : std::string();
  const auto rank = task.rank ? rank_text(*task.rank) : std::string();
  const auto share = task.share ? share_text(*task.share) : std::string();
  auto query = db.query(
      "UPDATE tasks SET state = ?, reason = ?, node = ?, attempt = ?, submitted_ms = ?, "
      "started_ms = ?, "
      "finished_ms = ?, policy = ?, cancel_asked = ?, exit = NULLIF(?,''), served = NULLIF(?,''), "
      "forgiven = ?, rank = NULLIF(?,''), restarts = ?, share = NULLIF(?,''), "
      "boot_id = NULLIF(?,0), clock_offset_ms = ? WHERE id = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(static_cast<int64_t>(task.state)).bind_borrowed(task.reason);
  query->bind_borrowed(task.node);
  query->bind(int64_t{task.attempt}).bind(task.submitted_ms).bind(task.started_ms);
  query->bind(task.finished_ms).bind_borrowed(task.policy).bind(int64_t{task.cancel_asked});
  query->bind_borrowed(exit).bind_borrowed(served).bind(int64_t{task.forgiven});
  query->bind_borrowed(rank).bind(int64_t{task.restarts}).bind_borrowed(share);
  bind_times_by(*query, task);
  return bind_unsigned(*query, task.id).run();
}

Status need_ends(Db& db, const std::vector<uint64_t>& tasks) {
  for (const uint64_t id : tasks) {
    auto query = db.query("SELECT 1 FROM tasks WHERE id = ? AND state < 4");
    if (!query) return tl::unexpected(query.error());
    auto goes_on = bind_unsigned(*query, id).step();
    if (!goes_on) return tl::unexpected(goes_on.error());
    if (*goes_on)
      return fail(ErrorCode::kConflict, fmt::format("the end of task {} is not written down", id));
  }
  return {};
}

Status put_receipt(Db& db, const RequestKey& request, const SubmitReceipt& receipt) {
  auto query = db.query(
      "INSERT INTO receipts(user, request_id, submission, first_task, task_count, digest) "
      "VALUES(?,?,?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(request.user).bind(request.id);
  bind_unsigned(*query, receipt.submission);
  bind_unsigned(*query, receipt.first_task);
  bind_unsigned(*query, receipt.task_count);
  return query->bind(receipt.digest).run();
}

Result<std::optional<Task>> task(Db& db, uint64_t id) {
  static const std::string sql = select_tasks() + "WHERE id = ?";
  auto query = db.query(sql.c_str());
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, id);
  auto rows = read_all<Task>(*query, read_task);
  if (!rows) return tl::unexpected(rows.error());
  return rows->empty() ? std::optional<Task>() : std::optional<Task>(std::move(rows->front()));
}

Result<std::vector<Task>> tasks(Db& db, const TaskFilter& filter) {
  // Chosen by what is asked, so that each form can use its index. Most tasks have succeeded: these
  // have none.
  static const std::string head = select_tasks() + "WHERE ";
  static const std::string by_id = head + "id > ?2 AND ?1 IS NOT NULL ORDER BY id LIMIT ?3";
  static const std::string by_submission =
      head + "submission = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
  static const std::string by_state = "state = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
  static const std::string succeeded = head + by_state;
  static const std::string active =
      select_tasks() + "INDEXED BY tasks_active WHERE state < 4 AND " + by_state;
  static const std::string without_success =
      select_tasks() + "INDEXED BY tasks_without_success WHERE state > 4 AND " + by_state;
  static const std::string by_both =
      head + "submission = ?1 AND id > ?2 AND state = ?4 ORDER BY id LIMIT ?3";
  const auto& sql = filter.submission && filter.state        ? by_both
                    : filter.submission                      ? by_submission
                    : !filter.state                          ? by_id
                    : *filter.state == TaskState::kSucceeded ? succeeded
                    : is_ended(*filter.state)                ? without_success
                                                             : active;
  auto query = db.query(sql.c_str());
  if (!query) return tl::unexpected(query.error());
  const int64_t state = filter.state ? static_cast<int64_t>(*filter.state) : 0;
  query->bind(filter.submission ? static_cast<int64_t>(filter.submission) : state);
  bind_unsigned(*query, filter.after);
  query->bind(int64_t{filter.limit});
  if (filter.submission && filter.state) query->bind(state);
  std::vector<Task> found;
  for (size_t bytes = 0; bytes <= filter.most_bytes;) {
    auto more = query->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) break;
    auto row = read_task(*query);
    if (!row) return tl::unexpected(row.error());
    bytes += query->text(12).size();
    found.push_back(std::move(*row));
  }
  return found;
}

Result<HistoryPage> history(Db& db, const HistoryFilter& filter) {
  constexpr int64_t kMaxRows = 5000;
  static const std::string sql = select_tasks() + "WHERE id > ? ORDER BY id LIMIT ?";
  auto query = db.query(sql.c_str());
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, filter.after);
  query->bind(kMaxRows);
  HistoryPage page;
  for (int64_t rows = 0;; ++rows) {
    if (page.tasks.size() >= filter.limit) return page;
    auto more = query->step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) {
      if (rows < kMaxRows) page.next = 0;
      return page;
    }
    page.next = as_unsigned(*query, 0);
    const int64_t submitted_ms = query->integer(6);
    if (submitted_ms < filter.from_ms || submitted_ms >= filter.until_ms) continue;
    auto task = read_task(*query);
    if (!task) return tl::unexpected(task.error());
    page.tasks.push_back(std::move(*task));
  }
}

Result<std::vector<Task>> active_tasks(Db& db) {
  static const std::string sql =
      select_tasks() + "INDEXED BY tasks_active WHERE state < 4 ORDER BY id";
  auto query = db.query(sql.c_str());
  if (!query) return tl::unexpected(query.error());
  return read_all<Task>(*query, read_task);
}

Result<uint64_t> last_task_id(Db& db) {
  return read_max(db, "SELECT COALESCE(MAX(id), 0) FROM tasks");
}

Result<uint64_t> last_submission(Db& db) {
  return read_max(db, "SELECT COALESCE(MAX(submission), 0) FROM tasks");
}

Result<std::optional<SubmitReceipt>> receipt(Db& db, const RequestKey& request) {
  auto query = db.query(
      "SELECT submission, first_task, task_count, digest FROM receipts "
      "WHERE user = ? AND request_id = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(request.user).bind(request.id);
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::optional<SubmitReceipt>();
  return std::optional(SubmitReceipt{as_unsigned(*query, 0), as_unsigned(*query, 1),
                                     as_unsigned(*query, 2), query->text(3)});
}

}  // namespace tierpilot::records
