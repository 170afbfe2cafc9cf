#include "coordinator/store/migrations/migration.h"

namespace tierpilot::records {

// Without a rowid, what is longer than a quarter of a page took a page of its own.
Status key_decisions_by_id(Db& db) {
  return db.execute(
      "CREATE TABLE decisions_by_id("
      "  id INTEGER PRIMARY KEY, body TEXT NOT NULL, encoded BLOB, reward TEXT);"
      "INSERT INTO decisions_by_id SELECT task << 16 | (attempt & 65535), body, encoded, reward "
      "FROM decisions;"
      "DROP TABLE decisions");
}

}  // namespace tierpilot::records
