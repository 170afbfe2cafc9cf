#include "tools/tiertool/move_rows.h"

#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tools/tiertool/move.h"

namespace tierpilot::tiertool {

using nlohmann::ordered_json;

namespace {

ordered_json counts_row(const std::string& reason, const MigrationCounts::Reason& counts) {
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  ordered_json row{{"reason", reason},
                   {"calls", counts.calls},
                   {"pages_moved", counts.pages_moved},
                   {"pages_failed", counts.pages_failed},
                   {"bytes_moved", counts.pages_moved * page_bytes},
                   {"busy_ms", static_cast<double>(counts.busy_ns) / 1e6}};
  const auto bytes = static_cast<double>(counts.timed_pages * page_bytes);
  set_or_unavailable(row, "gb_per_s",
                     counts.timed_pages > 0
                         ? std::optional(bytes / static_cast<double>(counts.busy_ns))
                         : std::nullopt,
                     "unavailable: no page moved in a timed call");
  return row;
}

}  // namespace

ordered_json migration_rows(const MigrationCounts& seen, const std::string& pairs_unavailable) {
  ordered_json rows = ordered_json::array();
  const auto add = [&](const std::string& reason, const MigrationCounts::Reason& counts,
                       const MigrationCounts::Pair& nodes) {
    auto row = counts_row(reason, counts);
    set_nodes(row, nodes.from_node, nodes.to_node, pairs_unavailable);
    rows.push_back(std::move(row));
  };
  if (!pairs_unavailable.empty()) {
    for (const auto& [reason, counts] : seen.by_reason) add(reason, counts, {});
    return rows;
  }
  for (const auto& pair : seen.pairs)
    for (const auto& [reason, counts] : pair.by_reason) add(reason, counts, pair);
  return rows;
}

void set_quantiles(ordered_json& row, const Histogram& durations_ns) {
  for (const auto& [key, q] : {std::pair("p50_us", 0.5), {"p99_us", 0.99}})
    set_or_unavailable(
        row, key,
        durations_ns.count() > 0 ? std::optional(durations_ns.quantile(q) / 1e3) : std::nullopt,
        "unavailable: none seen");
}

ordered_json fault_rows(const FaultTimeStats& stats) {
  ordered_json rows = ordered_json::array();
  const auto add = [&](std::optional<int> node, const Histogram& durations_ns) {
    ordered_json row;
    set_count(row, "node", node, "unavailable: these faults allocated no page");
    row["timed"] = durations_ns.count();
    row["estimated_faults"] = durations_ns.count() * stats.period;
    set_quantiles(row, durations_ns);
    rows.push_back(std::move(row));
  };
  for (const auto& [node, durations_ns] : stats.by_node_ns) add(node, durations_ns);
  add(std::nullopt, stats.no_page_ns);
  return rows;
}

}  // namespace tierpilot::tiertool
