// The store's tables, and how those of older versions become them.
#include "coordinator/store/records.h"

#include <fmt/format.h>

namespace tierpilot::records {
namespace {

constexpr int64_t kFormat = 5;

constexpr const char* kTables = R"sql(
CREATE TABLE IF NOT EXISTS settings(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks(
  id INTEGER PRIMARY KEY, job INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT NOT NULL,
  node TEXT NOT NULL, attempt INTEGER NOT NULL, submitted_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, user TEXT NOT NULL,
  policy TEXT NOT NULL, cancel_asked INTEGER NOT NULL, spec TEXT NOT NULL, exit TEXT, served TEXT,
  forgiven INTEGER NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS tasks_active ON tasks(id) WHERE state < 4;
CREATE INDEX IF NOT EXISTS tasks_without_success ON tasks(state, id) WHERE state > 4;
CREATE INDEX IF NOT EXISTS tasks_by_job ON tasks(job, id);
CREATE TABLE IF NOT EXISTS decisions_by_id(
  id INTEGER PRIMARY KEY, body TEXT NOT NULL, encoded BLOB);
CREATE TABLE IF NOT EXISTS rewards(id INTEGER PRIMARY KEY, body TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS datasets(
  name TEXT PRIMARY KEY, bytes INTEGER NOT NULL, version INTEGER NOT NULL, home TEXT NOT NULL,
  origin TEXT NOT NULL, request_id TEXT NOT NULL, reads INTEGER NOT NULL,
  writes INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS receipts(
  request_id TEXT PRIMARY KEY, job INTEGER NOT NULL, first_task INTEGER NOT NULL,
  task_count INTEGER NOT NULL, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS nodes(
  node TEXT PRIMARY KEY, slot INTEGER NOT NULL, instance INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS node_orders(
  node TEXT PRIMARY KEY, kind INTEGER NOT NULL, since_ms INTEGER NOT NULL,
  deadline_ms INTEGER NOT NULL, who TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS node_events(
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, node TEXT NOT NULL, what TEXT NOT NULL,
  why TEXT NOT NULL);
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

Status add_forgiven(Db& db) {
  auto query = db.query("SELECT COUNT(*) FROM pragma_table_info('tasks') WHERE name = 'forgiven'");
  if (!query) return tl::unexpected(query.error());
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  if (query->integer(0) > 0) return {};
  return db.execute("ALTER TABLE tasks ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0");
}

Status convert(Db& db, int64_t from) {
  if (from == 1)
    if (auto added = db.execute("ALTER TABLE decisions ADD COLUMN encoded BLOB;"
                                "ALTER TABLE decisions ADD COLUMN reward TEXT");
        !added)
      return added;
  // Without a rowid, what is longer than a quarter of a page took a page of its own.
  if (from < 3)
    if (auto moved = db.execute(
            "INSERT INTO decisions_by_id SELECT task << 16 | (attempt & 65535), body, encoded "
            "FROM decisions;"
            "INSERT INTO rewards SELECT task << 16 | (attempt & 65535), reward FROM decisions "
            "WHERE reward IS NOT NULL; DROP TABLE decisions");
        !moved)
      return moved;
  // A reward comes long after its decision: in that row, it wrote the whole page again.
  if (from == 3)
    if (auto moved = db.execute("INSERT INTO rewards SELECT id, reward FROM decisions_by_id "
                                "WHERE reward IS NOT NULL;"
                                "ALTER TABLE decisions_by_id DROP COLUMN reward");
        !moved)
      return moved;
  if (from < 5)
    if (auto added = add_forgiven(db); !added) return added;
  // Of all states, it was changed at every step of a task.
  return db.execute("DROP INDEX IF EXISTS tasks_by_state");
}

Status make_or_convert(Db& db) {
  if (auto made = db.execute(kTables); !made) return made;
  auto format = setting(db, "format", kFormat);
  if (!format) return tl::unexpected(format.error());
  if (*format > kFormat)
    return fail(ErrorCode::kInvalid,
                fmt::format("store: written in format {} by a newer version; this one reads up to "
                            "{}: install the newer version again",
                            *format, kFormat));
  if (auto converted = convert(db, *format); !converted) return converted;
  return put_setting(db, "format", kFormat);
}

}  // namespace

Status create_tables(Db& db) {
  if (auto begun = db.execute("BEGIN IMMEDIATE"); !begun) return begun;
  auto made = make_or_convert(db);
  if (made) made = db.execute("COMMIT");
  if (!made) (void)db.execute("ROLLBACK");
  return made;
}

Result<int64_t> setting(Db& db, const std::string& key, int64_t fallback) {
  auto query = db.query("SELECT value FROM settings WHERE key = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(key);
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? query->integer(0) : fallback;
}

Status put_setting(Db& db, const std::string& key, int64_t value) {
  auto query = db.query("INSERT OR REPLACE INTO settings(key, value) VALUES(?,?)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(key).bind(value).run();
}

}  // namespace tierpilot::records
