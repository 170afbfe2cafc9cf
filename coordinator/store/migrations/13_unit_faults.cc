#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// By which a daemon tells a unit's failure again, so that it counts once; empty where none does.
Status name_unit_faults(Db& db) {
  return db.execute(R"sql(
ALTER TABLE unit_failures ADD COLUMN told TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX unit_failures_told ON unit_failures(told) WHERE told <> '';
)sql");
}

}  // namespace tierpilot::records
