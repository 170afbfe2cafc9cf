#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// A reward comes long after its decision: in that row, it wrote the whole page again.
Status move_rewards(Db& db) {
  return db.execute(
      "CREATE TABLE rewards(id INTEGER PRIMARY KEY, body TEXT NOT NULL);"
      "INSERT INTO rewards SELECT id, reward FROM decisions_by_id WHERE reward IS NOT NULL;"
      "ALTER TABLE decisions_by_id DROP COLUMN reward");
}

}  // namespace tierpilot::records
