#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// Whether a node was away, and how it went, when the last coordinator heard of it.
Status add_nodes_away(Db& db) {
  return db.execute("ALTER TABLE nodes ADD COLUMN away INTEGER NOT NULL DEFAULT 0;");
}

}  // namespace tierpilot::records
