#include "coordinator/store/unit_records.h"

#include "coordinator/store/rows.h"

namespace tierpilot::records {

Status put_unit(Db& db, const std::string& unit, int64_t since_ms) {
  auto query = db.query("INSERT OR IGNORE INTO units(unit, since_ms) VALUES(?,?)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(unit).bind(since_ms).run();
}

Status remove_units(Db& db, const std::string& node) {
  // '0' is what follows '/'.
  for (const char* sql : {"DELETE FROM units WHERE unit > ? || '/' AND unit < ? || '0'",
                          "DELETE FROM unit_failures WHERE unit > ? || '/' AND unit < ? || '0'",
                          "DELETE FROM unit_failures WHERE told > ? || '/' AND told < ? || '0'",
                          "DELETE FROM unit_drains WHERE unit > ? || '/' AND unit < ? || '0'"}) {
    auto query = db.query(sql);
    if (!query) return tl::unexpected(query.error());
    if (auto done = query->bind(node).bind(node).run(); !done) return done;
  }
  return {};
}

Status put_unit_failure(Db& db, const UnitFailure& failure) {
  auto query = db.query(
      "INSERT INTO unit_failures(at_ms, unit, kind, task, told) VALUES(?,?,?,?,?) "
      "ON CONFLICT(told) WHERE told <> '' DO NOTHING");
  if (!query) return tl::unexpected(query.error());
  query->bind(failure.at_ms).bind(failure.unit).bind(failure.kind);
  if (auto put = bind_unsigned(*query, failure.task).bind(failure.told).run(); !put) return put;
  auto old =
      db.query("DELETE FROM unit_failures WHERE id <= (SELECT MAX(id) FROM unit_failures) - 10000");
  return old ? old->run() : Status(tl::unexpected(old.error()));
}

Status remove_unit_failures(Db& db, uint64_t task) {
  auto query = db.query("DELETE FROM unit_failures WHERE task = ?");
  if (!query) return tl::unexpected(query.error());
  return bind_unsigned(*query, task).run();
}

Status remove_unit_failures(Db& db, const std::string& unit) {
  // See UnitBook::resume().
  for (const char* sql : {"UPDATE unit_failures SET unit = '' WHERE unit = ? AND told <> ''",
                          "DELETE FROM unit_failures WHERE unit = ?"}) {
    auto query = db.query(sql);
    if (!query) return tl::unexpected(query.error());
    if (auto done = query->bind(unit).run(); !done) return done;
  }
  return {};
}

Status put_unit_drain(Db& db, const std::string& unit, int64_t at_ms, const std::string& reason) {
  auto query = reason.empty() ? db.query("DELETE FROM unit_drains WHERE unit = ?")
                              : db.query(
                                    "INSERT OR REPLACE INTO unit_drains(unit, at_ms, reason) "
                                    "VALUES(?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(unit);
  if (!reason.empty()) query->bind(at_ms).bind(reason);
  return query->run();
}

Result<KnownUnits> read_units(Db& db) {
  KnownUnits known;
  auto units = db.query("SELECT unit, since_ms FROM units");
  if (!units) return tl::unexpected(units.error());
  for (auto row = units->step(); !row || *row; row = units->step()) {
    if (!row) return tl::unexpected(row.error());
    known.since_ms.emplace(units->text(0), units->integer(1));
  }
  auto failures = db.query("SELECT at_ms, unit, kind, task, told FROM unit_failures ORDER BY id");
  if (!failures) return tl::unexpected(failures.error());
  for (auto row = failures->step(); !row || *row; row = failures->step()) {
    if (!row) return tl::unexpected(row.error());
    known.failures.push_back({failures->integer(0), failures->text(1), failures->text(2),
                              as_unsigned(*failures, 3), failures->text(4)});
  }
  auto drains = db.query("SELECT unit, reason FROM unit_drains");
  if (!drains) return tl::unexpected(drains.error());
  for (auto row = drains->step(); !row || *row; row = drains->step()) {
    if (!row) return tl::unexpected(row.error());
    known.drains.emplace(drains->text(0), drains->text(1));
  }
  return known;
}

}  // namespace tierpilot::records
