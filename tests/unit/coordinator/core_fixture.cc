#include "core_fixture.h"

#include "coordinator/store/records.h"

namespace tierpilot::testing {

std::optional<Task> CoreTest::stored(uint64_t id) {
  auto task = records::task(store_->reader(), id);
  EXPECT_TRUE(task) << task.error().message;
  return *task;
}

Status CoreTest::records_put(Db& db, const Task& task) {
  return records::put_task(db, task);
}

}  // namespace tierpilot::testing
