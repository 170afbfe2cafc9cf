#include <fmt/format.h>

#include <algorithm>

#include "coordinator/store/records.h"
#include "coordinator/store/rows.h"

namespace tierpilot::records {
Status put_dataset(Db& db, const Dataset& dataset) {
  auto query = db.query(
      "INSERT OR REPLACE INTO datasets(name, bytes, version, home, origin, request_id, reads, "
      "writes, digest, replicas) VALUES(?,?,?,?,?,?,?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(dataset.name);
  bind_unsigned(*query, dataset.bytes);
  bind_unsigned(*query, dataset.version);
  query->bind(dataset.home).bind(dataset.origin).bind(dataset.request_id);
  bind_unsigned(*query, dataset.reads);
  bind_unsigned(*query, dataset.writes);
  query->bind(to_string(dataset.digest)).bind(int64_t{dataset.replicas});
  return query->run();
}

Status need_versions(Db& db, const std::map<std::string, uint64_t>& versions) {
  for (const auto& [name, version] : versions) {
    auto query = db.query("SELECT 1 FROM datasets WHERE name = ? AND version >= ?");
    if (!query) return tl::unexpected(query.error());
    query->bind(name);
    auto there = bind_unsigned(*query, version).step();
    if (!there) return tl::unexpected(there.error());
    if (!*there)
      return fail(ErrorCode::kConflict,
                  fmt::format("version {} of dataset '{}' is not written down", version, name));
  }
  return {};
}

Status put_reads(Db& db, const std::string& dataset, uint64_t reads) {
  auto query = db.query("UPDATE datasets SET reads = ? WHERE name = ?");
  if (!query) return tl::unexpected(query.error());
  return bind_unsigned(*query, reads).bind(dataset).run();
}

Status remove_dataset(Db& db, const std::string& name) {
  auto query = db.query("DELETE FROM datasets WHERE name = ?");
  if (!query) return tl::unexpected(query.error());
  return query->bind(name).run();
}

Result<std::vector<Dataset>> datasets(Db& db) {
  auto query = db.query(
      "SELECT name, bytes, version, home, origin, request_id, reads, writes, digest, replicas "
      "FROM datasets");
  if (!query) return tl::unexpected(query.error());
  return read_all<Dataset>(*query, [](const Query& row) -> Result<Dataset> {
    const auto digest = parse_content_digest(row.text(8));
    if (!digest)
      return fail(ErrorCode::kIo, fmt::format("store: dataset '{}': its checksum is '{}'",
                                              row.text(0), row.text(8)));
    return Dataset{row.text(0),
                   as_unsigned(row, 1),
                   as_unsigned(row, 2),
                   row.text(3),
                   row.text(4),
                   row.text(5),
                   as_unsigned(row, 6),
                   as_unsigned(row, 7),
                   *digest,
                   static_cast<uint32_t>(row.integer(9))};
  });
}

Status put_node(Db& db, const std::string& node, const NodeMemory& memory) {
  auto query = db.query("INSERT OR REPLACE INTO nodes(node, slot, instance, away) VALUES(?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(node).bind(int64_t{memory.slot});
  return bind_unsigned(*query, memory.instance).bind(static_cast<int64_t>(memory.away)).run();
}

Result<std::map<std::string, NodeMemory>> nodes(Db& db) {
  auto query = db.query("SELECT node, slot, instance, away FROM nodes");
  if (!query) return tl::unexpected(query.error());
  using Row = std::pair<std::string, NodeMemory>;
  auto rows = read_all<Row>(*query, [](const Query& row) -> Result<Row> {
    return Row{row.text(0),
               {static_cast<uint32_t>(row.integer(1)), as_unsigned(row, 2),
                static_cast<NodeMemory::Away>(std::clamp<int64_t>(row.integer(3), 0, 2))}};
  });
  if (!rows) return tl::unexpected(rows.error());
  return std::map<std::string, NodeMemory>(rows->begin(), rows->end());
}

Status put_owed_drop(Db& db, const std::string& node, const std::string& dataset) {
  auto query = db.query("INSERT OR REPLACE INTO owed_drops(node, dataset) VALUES(?,?)");
  if (!query) return tl::unexpected(query.error());
  return query->bind(node).bind(dataset).run();
}

Status clear_owed_drop(Db& db, const std::string& node, const std::string& dataset) {
  auto query = db.query("DELETE FROM owed_drops WHERE node = ? AND dataset = ?");
  if (!query) return tl::unexpected(query.error());
  return query->bind(node).bind(dataset).run();
}

Status clear_owed_drops_of(Db& db, const std::string& dataset) {
  auto query = db.query("DELETE FROM owed_drops WHERE dataset = ?");
  if (!query) return tl::unexpected(query.error());
  return query->bind(dataset).run();
}

Result<std::vector<std::pair<std::string, std::string>>> owed_drops(Db& db) {
  auto query = db.query("SELECT node, dataset FROM owed_drops");
  if (!query) return tl::unexpected(query.error());
  using Row = std::pair<std::string, std::string>;
  return read_all<Row>(*query, [](const Query& row) -> Result<Row> {
    return Row{row.text(0), row.text(1)};
  });
}

}  // namespace tierpilot::records
