// The store's format: which one a store has, and the steps that lead to that of today.
#include <fmt/format.h>

#include "base/log.h"
#include "coordinator/store/migrations/migration.h"
#include "coordinator/store/records.h"

namespace tierpilot::records {
namespace {

// 0: nothing has been written yet.
Result<int64_t> read_format(Db& db) {
  auto tables = db.query("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'settings'");
  if (!tables) return tl::unexpected(tables.error());
  auto row = tables->step();
  if (!row) return tl::unexpected(row.error());
  if (tables->integer(0) == 0) return 0;
  return setting(db, "format", kEmptyStore);
}

Status take_steps(Db& db, int64_t from) {
  for (const auto& step : migrations()) {
    if (step.to <= from) continue;
    if (auto applied = step.apply(db); !applied)
      return fail(applied.error().code,
                  fmt::format("{} (while format {} was made)", applied.error().message, step.to));
  }
  return put_setting(db, "format", migrations().back().to);
}

}  // namespace

Status create_tables(Db& db) {
  const auto format = read_format(db);
  if (!format) return tl::unexpected(format.error());
  const int64_t newest = migrations().back().to;
  // A store of today is only read: the coordinator also starts where the disk is full.
  if (*format == newest) return {};
  if (*format > newest)
    return fail(ErrorCode::kInvalid,
                fmt::format("store: written in format {} by a newer version; this one reads up to "
                            "{}: install the newer version again",
                            *format, newest));
  if (*format > 0) spdlog::info("store: format {} is brought to {}", *format, newest);
  if (auto begun = db.execute("BEGIN IMMEDIATE"); !begun) return begun;
  auto made = take_steps(db, *format > 0 ? *format : kEmptyStore);
  if (made) made = db.execute("COMMIT");
  if (!made) (void)db.execute("ROLLBACK");
  return made;
}

Result<int64_t> setting(Db& db, const std::string& key, int64_t fallback) {
  auto query = db.query("SELECT value FROM settings WHERE key = ?");
  if (!query) return tl::unexpected(query.error());
  query->bind(key);
  auto row = query->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? query->integer(0) : fallback;
}

Status put_setting(Db& db, const std::string& key, int64_t value) {
  auto query = db.query("INSERT OR REPLACE INTO settings(key, value) VALUES(?,?)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(key).bind(value).run();
}

}  // namespace tierpilot::records
