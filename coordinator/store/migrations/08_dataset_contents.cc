#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// What bytes a version has, which its home tells, and how many nodes are to keep it.
Status add_dataset_contents(Db& db) {
  return db.execute(R"sql(
ALTER TABLE datasets ADD COLUMN digest TEXT NOT NULL DEFAULT '';
ALTER TABLE datasets ADD COLUMN replicas INTEGER NOT NULL DEFAULT 1;
)sql");
}

}  // namespace tierpilot::records
