#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// Operators' orders to nodes and what befell these; tries of a task that were a node's fault.
Status add_node_orders(Db& db) {
  return db.execute(R"sql(
ALTER TABLE tasks ADD COLUMN forgiven INTEGER NOT NULL DEFAULT 0;
CREATE TABLE node_orders(
  node TEXT PRIMARY KEY, kind INTEGER NOT NULL, since_ms INTEGER NOT NULL,
  deadline_ms INTEGER NOT NULL, who TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE node_events(
  id INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, node TEXT NOT NULL, what TEXT NOT NULL,
  why TEXT NOT NULL);
)sql");
}

}  // namespace tierpilot::records
