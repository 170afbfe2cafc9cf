#include "coordinator/store/records.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

#include "coordinator/model_json.h"

namespace tierpilot::records {
namespace {

constexpr int64_t kFormat = 2;

constexpr const char* kTables = R"sql(
CREATE TABLE IF NOT EXISTS settings(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks(
  id INTEGER PRIMARY KEY, job INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT NOT NULL,
  node TEXT NOT NULL, attempt INTEGER NOT NULL, submitted_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, user TEXT NOT NULL,
  policy TEXT NOT NULL, cancel_asked INTEGER NOT NULL, spec TEXT NOT NULL, exit TEXT, served TEXT);
CREATE INDEX IF NOT EXISTS tasks_by_state ON tasks(state, id);
CREATE INDEX IF NOT EXISTS tasks_by_job ON tasks(job, id);
CREATE TABLE IF NOT EXISTS decisions(
  task INTEGER NOT NULL, attempt INTEGER NOT NULL, body TEXT NOT NULL, encoded BLOB, reward TEXT,
  PRIMARY KEY(task, attempt)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS datasets(
  name TEXT PRIMARY KEY, bytes INTEGER NOT NULL, version INTEGER NOT NULL, home TEXT NOT NULL,
  origin TEXT NOT NULL, request_id TEXT NOT NULL, reads INTEGER NOT NULL,
  writes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS receipts(
  request_id TEXT PRIMARY KEY, job INTEGER NOT NULL, first_task INTEGER NOT NULL,
  task_count INTEGER NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nodes(
  node TEXT PRIMARY KEY, slot INTEGER NOT NULL, instance INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS owed_drops(
  node TEXT NOT NULL, dataset TEXT NOT NULL, PRIMARY KEY(node, dataset)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS policy_standings(
  policy TEXT PRIMARY KEY, mode INTEGER NOT NULL, standing INTEGER NOT NULL, step INTEGER NOT NULL,
  setbacks INTEGER NOT NULL, why TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS policy_events(
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, policy TEXT NOT NULL, what TEXT NOT NULL,
  why TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS receipts_by_job ON receipts(job);
)sql";

constexpr const char* kTaskColumns =
    "id, job, state, reason, node, attempt, submitted_ms, started_ms, finished_ms, user, policy, "
    "cancel_asked, spec, exit, served";

Query& bind_unsigned(Query& query, uint64_t value) {
  return query.bind(static_cast<int64_t>(value));
}

uint64_t as_unsigned(const Query& query, int column) {
  return static_cast<uint64_t>(query.integer(column));
}

Result<Task> read_task(const Query& row) {
  Task task;
  task.id = as_unsigned(row, 0);
  task.job = as_unsigned(row, 1);
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
  return task;
}

Result<DecisionRecord> read_decision(const Query& row) {
  auto decision = parse_decision(row.text(0));
  if (!decision) return decision;
  const auto encoded = row.bytes(1);
  if (encoded.size() % sizeof(float) != 0)
    return fail(ErrorCode::kInvalid, "store: decision: what the network saw is cut short");
  decision->encoded.resize(encoded.size() / sizeof(float));
  std::memcpy(decision->encoded.data(), encoded.data(), encoded.size());
  if (row.is_null(2)) return decision;
  auto reward = parse_reward(row.text(2));
  if (!reward) return tl::unexpected(reward.error());
  decision->reward = std::move(*reward);
  return decision;
}

// Reads all rows of `query` with `read`.
template <class T, class Read>
Result<std::vector<T>> read_all(Query& query, Read read) {
  std::vector<T> rows;
  for (;;) {
    auto more = query.step();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return rows;
    Result<T> row = read(query);
    if (!row) return tl::unexpected(row.error());
    rows.push_back(std::move(*row));
  }
}

Result<uint64_t> read_max(Db& db, const char* sql) {
  auto query = db.query(sql);
  if (!query) return tl::unexpected(query.error());
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  return as_unsigned(*query, 0);
}

}  // namespace

Status create_tables(Db& db) {
  if (auto made = db.execute(kTables); !made) return made;
  auto format = setting(db, "format", kFormat);
  if (!format) return tl::unexpected(format.error());
  if (*format > kFormat)
    return fail(ErrorCode::kInvalid,
                fmt::format("store: written in format {} by a newer version; this one reads up to "
                            "{}: install the newer version again",
                            *format, kFormat));
  if (*format == 1)
    for (const char* sql : {"ALTER TABLE decisions ADD COLUMN encoded BLOB",
                            "ALTER TABLE decisions ADD COLUMN reward TEXT"})
      if (auto added = db.execute(sql); !added) return added;
  return put_setting(db, "format", kFormat);
}

Status put_task(Db& db, const Task& task) {
  auto query = db.query(
      "INSERT OR REPLACE INTO tasks(id, job, state, reason, node, attempt, submitted_ms, "
      "started_ms, finished_ms, user, policy, cancel_asked, spec, exit, served) "
      "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,NULLIF(?,''),NULLIF(?,''))");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, task.id);
  bind_unsigned(*query, task.job);
  query->bind(static_cast<int64_t>(task.state)).bind(task.reason).bind(task.node);
  query->bind(int64_t{task.attempt}).bind(task.submitted_ms).bind(task.started_ms);
  query->bind(task.finished_ms).bind(task.user).bind(task.policy);
  query->bind(int64_t{task.cancel_asked}).bind(spec_text(task.spec));
  query->bind(task.exit ? exit_text(*task.exit) : std::string());
  query->bind(task.served ? served_text(*task.served) : std::string());
  return query->run();
}

Status update_task(Db& db, const Task& task) {
  auto query = db.query(
      "UPDATE tasks SET state = ?, reason = ?, node = ?, attempt = ?, started_ms = ?, "
      "finished_ms = ?, policy = ?, cancel_asked = ?, exit = NULLIF(?,''), served = NULLIF(?,'') "
      "WHERE id = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(static_cast<int64_t>(task.state)).bind(task.reason).bind(task.node);
  query->bind(int64_t{task.attempt}).bind(task.started_ms).bind(task.finished_ms);
  query->bind(task.policy).bind(int64_t{task.cancel_asked});
  query->bind(task.exit ? exit_text(*task.exit) : std::string());
  query->bind(task.served ? served_text(*task.served) : std::string());
  return bind_unsigned(*query, task.id).run();
}

Status put_decision(Db& db, const DecisionRecord& decision) {
  auto query =
      db.query("INSERT OR REPLACE INTO decisions(task, attempt, body, encoded) VALUES(?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, decision.attempt.task);
  query->bind(int64_t{decision.attempt.attempt}).bind(decision_text(decision));
  return query->bind(std::as_bytes(std::span(decision.encoded))).run();
}

Status put_reward(Db& db, AttemptId attempt, const RewardRecord& reward) {
  auto query = db.query("UPDATE decisions SET reward = ? WHERE task = ? AND attempt = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(reward_text(reward));
  return bind_unsigned(*query, attempt.task).bind(int64_t{attempt.attempt}).run();
}

Status put_dataset(Db& db, const Dataset& dataset) {
  auto query = db.query(
      "INSERT OR REPLACE INTO datasets(name, bytes, version, home, origin, request_id, reads, "
      "writes) VALUES(?,?,?,?,?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(dataset.name);
  bind_unsigned(*query, dataset.bytes);
  bind_unsigned(*query, dataset.version);
  query->bind(dataset.home).bind(dataset.origin).bind(dataset.request_id);
  bind_unsigned(*query, dataset.reads);
  bind_unsigned(*query, dataset.writes);
  return query->run();
}

Status remove_dataset(Db& db, const std::string& name) {
  auto query = db.query("DELETE FROM datasets WHERE name = ?");
  if (!query) return tl::unexpected(query.error());
  return query->bind(name).run();
}

Status put_receipt(Db& db, const std::string& request_id, const SubmitReceipt& receipt) {
  auto query = db.query(
      "INSERT INTO receipts(request_id, job, first_task, task_count, digest) VALUES(?,?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(request_id);
  bind_unsigned(*query, receipt.job);
  bind_unsigned(*query, receipt.first_task);
  bind_unsigned(*query, receipt.task_count);
  return query->bind(receipt.digest).run();
}

Status put_setting(Db& db, const std::string& key, int64_t value) {
  auto query = db.query("INSERT OR REPLACE INTO settings(key, value) VALUES(?,?)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(key).bind(value).run();
}

Status prune(Db& db, int64_t finished_before_ms) {
  // A job goes as a whole, so that a receipt never points at tasks that are gone; the last one
  // stays, so that its ids are not used again.
  for (const char* sql : {"CREATE TEMP TABLE IF NOT EXISTS old_jobs(job INTEGER PRIMARY KEY)",
                          "DELETE FROM temp.old_jobs"}) {
    if (auto done = db.execute(sql); !done) return done;
  }
  auto pick = db.query(
      "INSERT INTO temp.old_jobs SELECT job FROM tasks GROUP BY job "
      "HAVING MIN(state) >= 4 AND MAX(finished_ms) < ? AND job < (SELECT MAX(job) FROM tasks) "
      "LIMIT 10000");
  if (!pick) return tl::unexpected(pick.error());
  if (auto done = pick->bind(finished_before_ms).run(); !done) return done;
  for (const char* sql :
       {"DELETE FROM decisions WHERE task IN (SELECT id FROM tasks WHERE job IN temp.old_jobs)",
        "DELETE FROM receipts WHERE job IN temp.old_jobs",
        "DELETE FROM tasks WHERE job IN temp.old_jobs"}) {
    if (auto done = db.execute(sql); !done) return done;
  }
  return {};
}

Result<std::optional<Task>> task(Db& db, uint64_t id) {
  auto query = db.query(
      "SELECT id, job, state, reason, node, attempt, submitted_ms, started_ms, finished_ms, user, "
      "policy, cancel_asked, spec, exit, served FROM tasks WHERE id = ?");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, id);
  auto rows = read_all<Task>(*query, read_task);
  if (!rows) return tl::unexpected(rows.error());
  return rows->empty() ? std::optional<Task>() : std::optional<Task>(std::move(rows->front()));
}

Result<std::vector<Task>> tasks(Db& db, const TaskFilter& filter) {
  // Chosen by what is asked, so that each form can use its index.
  static const std::string head = std::string("SELECT ") + kTaskColumns + " FROM tasks WHERE ";
  static const std::string by_id = head + "id > ?2 AND ?1 IS NOT NULL ORDER BY id LIMIT ?3";
  static const std::string by_job = head + "job = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
  static const std::string by_state = head + "state = ?1 AND id > ?2 ORDER BY id LIMIT ?3";
  static const std::string by_both =
      head + "job = ?1 AND id > ?2 AND state = ?4 ORDER BY id LIMIT ?3";
  const auto& sql = filter.job && filter.state ? by_both
                    : filter.job               ? by_job
                    : filter.state             ? by_state
                                               : by_id;
  auto query = db.query(sql.c_str());
  if (!query) return tl::unexpected(query.error());
  const int64_t state = filter.state ? static_cast<int64_t>(*filter.state) : 0;
  query->bind(filter.job ? static_cast<int64_t>(filter.job) : state);
  bind_unsigned(*query, filter.after);
  query->bind(int64_t{filter.limit});
  if (filter.job && filter.state) query->bind(state);
  return read_all<Task>(*query, read_task);
}

Result<HistoryPage> history(Db& db, const HistoryFilter& filter) {
  constexpr int64_t kMaxRows = 5000;
  static const std::string sql =
      std::string("SELECT ") + kTaskColumns + " FROM tasks WHERE id > ? ORDER BY id LIMIT ?";
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
  auto query = db.query(
      "SELECT id, job, state, reason, node, attempt, submitted_ms, started_ms, finished_ms, user, "
      "policy, cancel_asked, spec, exit, served FROM tasks WHERE state < 4 ORDER BY id");
  if (!query) return tl::unexpected(query.error());
  return read_all<Task>(*query, read_task);
}

Result<uint64_t> last_task_id(Db& db) {
  return read_max(db, "SELECT COALESCE(MAX(id), 0) FROM tasks");
}

Result<uint64_t> last_job_id(Db& db) {
  return read_max(db, "SELECT COALESCE(MAX(job), 0) FROM tasks");
}

Result<std::vector<DecisionRecord>> decisions(Db& db, uint64_t task_id) {
  auto query =
      db.query("SELECT body, encoded, reward FROM decisions WHERE task = ? ORDER BY attempt");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, task_id);
  return read_all<DecisionRecord>(*query, read_decision);
}

Result<std::vector<Dataset>> datasets(Db& db) {
  auto query = db.query(
      "SELECT name, bytes, version, home, origin, request_id, reads, writes FROM datasets");
  if (!query) return tl::unexpected(query.error());
  return read_all<Dataset>(*query, [](const Query& row) -> Result<Dataset> {
    return Dataset{row.text(0), as_unsigned(row, 1), as_unsigned(row, 2), row.text(3),
                   row.text(4), row.text(5),         as_unsigned(row, 6), as_unsigned(row, 7)};
  });
}

Result<std::optional<SubmitReceipt>> receipt(Db& db, const std::string& request_id) {
  auto query =
      db.query("SELECT job, first_task, task_count, digest FROM receipts WHERE request_id = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(request_id);
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::optional<SubmitReceipt>();
  return std::optional(SubmitReceipt{as_unsigned(*query, 0), as_unsigned(*query, 1),
                                     as_unsigned(*query, 2), query->text(3)});
}

Status put_node(Db& db, const std::string& node, const NodeMemory& memory) {
  auto query = db.query("INSERT OR REPLACE INTO nodes(node, slot, instance) VALUES(?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(node).bind(int64_t{memory.slot});
  return bind_unsigned(*query, memory.instance).run();
}

Result<std::map<std::string, NodeMemory>> nodes(Db& db) {
  auto query = db.query("SELECT node, slot, instance FROM nodes");
  if (!query) return tl::unexpected(query.error());
  using Row = std::pair<std::string, NodeMemory>;
  auto rows = read_all<Row>(*query, [](const Query& row) -> Result<Row> {
    return Row{row.text(0), {static_cast<uint32_t>(row.integer(1)), as_unsigned(row, 2)}};
  });
  if (!rows) return tl::unexpected(rows.error());
  return std::map<std::string, NodeMemory>(rows->begin(), rows->end());
}

Status put_owed_drop(Db& db, const std::string& node, const std::string& dataset) {
  auto query = db.query("INSERT OR REPLACE INTO owed_drops(node, dataset) VALUES(?,?)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(node).bind(dataset).run();
}

Status clear_owed_drops(Db& db, const std::string& node) {
  auto query = db.query("DELETE FROM owed_drops WHERE node = ?");
  if (!query) return tl::unexpected(query.error());
  return query->bind(node).run();
}

Result<std::vector<std::pair<std::string, std::string>>> owed_drops(Db& db) {
  auto query = db.query("SELECT node, dataset FROM owed_drops");
  if (!query) return tl::unexpected(query.error());
  using Row = std::pair<std::string, std::string>;
  return read_all<Row>(*query, [](const Query& row) -> Result<Row> {
    return Row{row.text(0), row.text(1)};
  });
}

Status put_policy_standing(Db& db, const PolicyStanding& standing) {
  auto query = db.query(
      "INSERT OR REPLACE INTO policy_standings(policy, mode, standing, step, setbacks, why) "
      "VALUES(?,?,?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  const auto& memory = standing.memory;
  query->bind(standing.policy).bind(static_cast<int64_t>(memory.mode));
  query->bind(static_cast<int64_t>(memory.standing)).bind(int64_t{memory.step});
  return query->bind(int64_t{memory.setbacks}).bind(memory.why).run();
}

Result<std::vector<PolicyStanding>> policy_standings(Db& db) {
  auto query = db.query("SELECT policy, mode, standing, step, setbacks, why FROM policy_standings");
  if (!query) return tl::unexpected(query.error());
  return read_all<PolicyStanding>(*query, [](const Query& row) -> Result<PolicyStanding> {
    const int64_t mode = row.integer(1), standing = row.integer(2);
    if (mode < 0 || mode > static_cast<int64_t>(PolicyMode::kEnforce) || standing < 0 ||
        standing > static_cast<int64_t>(Standing::kProbation))
      return fail(ErrorCode::kInvalid,
                  fmt::format("store: policy '{}': mode {} or standing {} is unknown here",
                              row.text(0), mode, standing));
    return PolicyStanding{row.text(0),
                          {static_cast<PolicyMode>(mode), static_cast<Standing>(standing),
                           static_cast<uint32_t>(row.integer(3)),
                           static_cast<uint32_t>(row.integer(4)), row.text(5)}};
  });
}

Status put_policy_event(Db& db, const PolicyEvent& event) {
  auto query = db.query("INSERT INTO policy_events(at_ms, policy, what, why) VALUES(?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(event.at_ms).bind(event.policy).bind(event.what);
  if (auto put = query->bind(event.why).run(); !put) return put;
  auto old =
      db.query("DELETE FROM policy_events WHERE id <= (SELECT MAX(id) FROM policy_events) - 1000");
  return old ? old->run() : Status(tl::unexpected(old.error()));
}

Result<std::vector<PolicyEvent>> policy_events(Db& db, const std::string& policy, uint32_t limit) {
  auto query = db.query(
      "SELECT at_ms, policy, what, why FROM policy_events WHERE ?1 = '' OR policy = ?1 "
      "ORDER BY id DESC LIMIT ?2");
  if (!query) return tl::unexpected(query.error());
  query->bind(policy).bind(int64_t{limit});
  return read_all<PolicyEvent>(*query, [](const Query& row) -> Result<PolicyEvent> {
    return PolicyEvent{row.integer(0), row.text(1), row.text(2), row.text(3)};
  });
}

Result<int64_t> setting(Db& db, const std::string& key, int64_t fallback) {
  auto query = db.query("SELECT value FROM settings WHERE key = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(key);
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? query->integer(0) : fallback;
}

}  // namespace tierpilot::records
