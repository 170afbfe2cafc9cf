#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// The newest checkpoint that a job was told outlives a node.
Status add_safe_checkpoints(Db& db) {
  return db.execute("CREATE TABLE safe_checkpoints(task INTEGER PRIMARY KEY, name TEXT NOT NULL)");
}

}  // namespace tierpilot::records
