#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// What tasks have of shared units.
Status add_shares(Db& db) {
  return db.execute("ALTER TABLE tasks ADD COLUMN share TEXT");
}

}  // namespace tierpilot::records
