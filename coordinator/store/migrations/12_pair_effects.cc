#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// What was measured of pairs of names: jobs beside each other, jobs on nodes.
Status add_pair_effects(Db& db) {
  return db.execute(R"sql(
CREATE TABLE pair_effects(
  kind TEXT NOT NULL, first TEXT NOT NULL, second TEXT NOT NULL,
  measured_ms INTEGER NOT NULL, body TEXT NOT NULL,
  PRIMARY KEY(kind, first, second)) WITHOUT ROWID;
CREATE INDEX pair_effects_by_age ON pair_effects(kind, measured_ms);
)sql");
}

}  // namespace tierpilot::records
