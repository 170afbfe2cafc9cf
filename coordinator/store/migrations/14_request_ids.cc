#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// A request id is its user's: what another one asks by the same is his own. The index keeps its
// name.
Status key_receipts_by_user(Db& db) {
  return db.execute(R"sql(
CREATE TABLE receipts_of_users(
  user TEXT NOT NULL, request_id TEXT NOT NULL, submission INTEGER NOT NULL,
  first_task INTEGER NOT NULL, task_count INTEGER NOT NULL, digest TEXT NOT NULL,
  PRIMARY KEY(user, request_id)) WITHOUT ROWID;
INSERT INTO receipts_of_users
  SELECT COALESCE((SELECT user FROM tasks WHERE id = first_task), ''),
         request_id, submission, first_task, task_count, digest FROM receipts;
DROP TABLE receipts;
ALTER TABLE receipts_of_users RENAME TO receipts;
CREATE INDEX receipts_by_job ON receipts(submission);
)sql");
}

}  // namespace tierpilot::records
