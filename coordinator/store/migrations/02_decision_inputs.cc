#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// What the network saw, and the reward, in columns of their own: as JSON they were most of a row.
Status add_decision_inputs(Db& db) {
  return db.execute(
      "ALTER TABLE decisions ADD COLUMN encoded BLOB;"
      "ALTER TABLE decisions ADD COLUMN reward TEXT");
}

}  // namespace tierpilot::records
