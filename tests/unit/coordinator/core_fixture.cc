#include "core_fixture.h"

#include <fmt/format.h>

#include "coordinator/store/records.h"

namespace tierpilot::testing {

std::optional<Task> CoreTest::stored(uint64_t id) {
  auto task = records::task(store_->reader(), id);
  EXPECT_TRUE(task) << task.error().message;
  return *task;
}

void CoreTest::set_disk_full(bool full) {
  std::string sql;
  for (const char* table : {"tasks", "nodes", "settings"})
    for (const char* change : {"INSERT", "UPDATE"})
      sql += full ? fmt::format(
                        "CREATE TRIGGER full_{0}_{1} BEFORE {1} ON {0} BEGIN "
                        "SELECT RAISE(ABORT, 'database or disk is full'); END;",
                        table, change)
                  : fmt::format("DROP TRIGGER full_{}_{};", table, change);
  store_->write([sql](Db& db) { return db.execute(sql.c_str()); },
                [](const Status& done) { EXPECT_TRUE(done) << done.error().message; });
  flush();
}

Status CoreTest::records_put(Db& db, const Task& task) {
  return records::put_task(db, task);
}

}  // namespace tierpilot::testing
