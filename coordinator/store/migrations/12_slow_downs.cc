#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// What jobs keep of their speed beside each other, by their names.
Status add_slow_downs(Db& db) {
  return db.execute(R"sql(
CREATE TABLE slow_downs(
  unit_kind TEXT NOT NULL, victim TEXT NOT NULL, neighbour TEXT NOT NULL,
  measured_ms INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY(unit_kind, victim, neighbour)) WITHOUT ROWID;
CREATE INDEX slow_downs_by_age ON slow_downs(unit_kind, measured_ms);
)sql");
}

}  // namespace tierpilot::records
