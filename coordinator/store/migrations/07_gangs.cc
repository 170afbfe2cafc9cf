#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// What a rank of a gang has and where; restarts of gangs; what befell units and was ordered of them.
Status add_gangs(Db& db) {
  return db.execute(R"sql(
ALTER TABLE tasks ADD COLUMN rank TEXT;
ALTER TABLE tasks ADD COLUMN restarts INTEGER NOT NULL DEFAULT 0;
CREATE TABLE unit_failures(
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, unit TEXT NOT NULL, kind TEXT NOT NULL,
  task INTEGER NOT NULL);
CREATE TABLE unit_drains(unit TEXT PRIMARY KEY, at_ms INTEGER NOT NULL, reason TEXT NOT NULL)
  WITHOUT ROWID;
CREATE TABLE units(unit TEXT PRIMARY KEY, since_ms INTEGER NOT NULL) WITHOUT ROWID;
)sql");
}

}  // namespace tierpilot::records
