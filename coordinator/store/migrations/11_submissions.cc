#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// A job is a training; what is submitted at once is a submission. The indexes keep their names: to
// make them anew takes as long as there are tasks.
Status name_submissions(Db& db) {
  return db.execute(R"sql(
ALTER TABLE tasks RENAME COLUMN job TO submission;
ALTER TABLE receipts RENAME COLUMN job TO submission;
)sql");
}

}  // namespace tierpilot::records
