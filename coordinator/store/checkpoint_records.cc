#include "coordinator/store/records.h"
#include "coordinator/store/rows.h"

namespace tierpilot::records {

Status put_safe_checkpoint(Db& db, const CheckpointName& name) {
  auto query = db.query(
      "INSERT OR REPLACE INTO safe_checkpoints(task, name) "
      "SELECT ?1, ?2 WHERE EXISTS(SELECT 1 FROM tasks WHERE id = ?1)");
  if (!query) return tl::unexpected(query.error());
  bind_unsigned(*query, name.task);
  return query->bind(to_string(name)).run();
}

Result<std::vector<CheckpointName>> safe_checkpoints(Db& db) {
  auto query = db.query("SELECT name FROM safe_checkpoints");
  if (!query) return tl::unexpected(query.error());
  return read_all<CheckpointName>(*query, [](const Query& row) -> Result<CheckpointName> {
    if (const auto name = parse_checkpoint_name(row.text(0))) return *name;
    return fail(ErrorCode::kIo, "store: a checkpoint is named '" + row.text(0) + "'");
  });
}

}  // namespace tierpilot::records
