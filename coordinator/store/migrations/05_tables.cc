#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {
namespace {

// Up to format 4 some tables were added without a step: a store may have them or not.
constexpr const char* kTables = R"sql(
CREATE TABLE IF NOT EXISTS settings(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tasks(
  id INTEGER PRIMARY KEY, job INTEGER NOT NULL, state INTEGER NOT NULL, reason TEXT NOT NULL,
  node TEXT NOT NULL, attempt INTEGER NOT NULL, submitted_ms INTEGER NOT NULL,
  started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, user TEXT NOT NULL,
  policy TEXT NOT NULL, cancel_asked INTEGER NOT NULL, spec TEXT NOT NULL, exit TEXT, served TEXT);
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
CREATE INDEX IF NOT EXISTS receipts_by_job ON receipts(job);
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
)sql";

}  // namespace

Status make_tables(Db& db) {
  if (auto made = db.execute(kTables); !made) return made;
  // Of all states, it was changed at every step of a task.
  return db.execute("DROP INDEX IF EXISTS tasks_by_state");
}

}  // namespace tierpilot::records
