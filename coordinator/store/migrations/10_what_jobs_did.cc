#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// What jobs said of themselves, a series for each task, and what runs of a name have used.
Status add_what_jobs_did(Db& db) {
  return db.execute(R"sql(
CREATE TABLE job_progress(task INTEGER PRIMARY KEY, points TEXT NOT NULL);
CREATE TABLE past_runs(
  engine TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY(engine, name))
  WITHOUT ROWID;
)sql");
}

}  // namespace tierpilot::records
