#include "coordinator/store/records.h"

#include <fmt/format.h>

#include "coordinator/store/rows.h"

namespace tierpilot::records {

Status remove_node(Db& db, const std::string& node) {
  for (const char* sql :
       {"DELETE FROM nodes WHERE node = ?", "DELETE FROM node_orders WHERE node = ?",
        "DELETE FROM owed_drops WHERE node = ?"}) {
    auto query = db.query(sql);
    if (!query) return tl::unexpected(query.error());
    if (auto done = query->bind(node).run(); !done) return done;
  }
  return {};
}

Status put_node_order(Db& db, const std::string& node, const NodeOrder& order) {
  if (order.kind == NodeOrder::Kind::kNone) {
    auto query = db.query("DELETE FROM node_orders WHERE node = ?");
    return query ? query->bind(node).run() : Status(tl::unexpected(query.error()));
  }
  auto query = db.query(
      "INSERT OR REPLACE INTO node_orders(node, kind, since_ms, deadline_ms, who) "
      "VALUES(?,?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(node).bind(static_cast<int64_t>(order.kind)).bind(order.since_ms);
  return query->bind(order.deadline_ms).bind(order.who).run();
}

Result<std::map<std::string, NodeOrder>> node_orders(Db& db) {
  auto query = db.query("SELECT node, kind, since_ms, deadline_ms, who FROM node_orders");
  if (!query) return tl::unexpected(query.error());
  using Row = std::pair<std::string, NodeOrder>;
  auto rows = read_all<Row>(*query, [](const Query& row) -> Result<Row> {
    const int64_t kind = row.integer(1);
    if (kind < 0 || kind >= NodeOrder::kKinds)
      return fail(ErrorCode::kInvalid,
                  fmt::format("store: node '{}': order {} is unknown here", row.text(0), kind));
    return Row{row.text(0), NodeOrder{static_cast<NodeOrder::Kind>(kind), row.integer(2),
                                      row.integer(3), row.text(4)}};
  });
  if (!rows) return tl::unexpected(rows.error());
  return std::map<std::string, NodeOrder>(rows->begin(), rows->end());
}

Status put_node_event(Db& db, const NodeEvent& event) {
  auto query = db.query("INSERT INTO node_events(at_ms, node, what, why) VALUES(?,?,?,?)");
  if (!query) return tl::unexpected(query.error());
  query->bind(event.at_ms).bind(event.node).bind(event.what);
  if (auto put = query->bind(event.why).run(); !put) return put;
  auto old =
      db.query("DELETE FROM node_events WHERE id <= (SELECT MAX(id) FROM node_events) - 10000");
  return old ? old->run() : Status(tl::unexpected(old.error()));
}

Result<std::vector<NodeEvent>> node_events(Db& db, const std::string& node, uint32_t limit) {
  auto query = db.query(
      "SELECT at_ms, node, what, why FROM node_events WHERE node = ?1 ORDER BY id DESC LIMIT ?2");
  if (!query) return tl::unexpected(query.error());
  query->bind(node).bind(int64_t{limit});
  return read_all<NodeEvent>(*query, [](const Query& row) -> Result<NodeEvent> {
    return NodeEvent{row.integer(0), row.text(1), row.text(2), row.text(3)};
  });
}

}  // namespace tierpilot::records
