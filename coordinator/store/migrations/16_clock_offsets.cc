#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// By which clock the times of tasks with promises and deadlines are.
Status add_clock_offsets(Db& db) {
  return db.execute(
      "ALTER TABLE tasks ADD COLUMN boot_id INTEGER;"
      "ALTER TABLE tasks ADD COLUMN clock_offset_ms INTEGER;");
}

}  // namespace tierpilot::records
