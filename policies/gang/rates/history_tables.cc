#include "policies/gang/rates/history_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/table/cell.h"
#include "base/table/csv_table.h"

namespace tierpilot::gang {
namespace {

constexpr double kDayNs = 86400e9;
constexpr double kMaxDays = 1e6;

struct Columns {
  std::optional<size_t> unit, node, kind, begin, end;
  bool days = true;  // else seconds or dates
  std::vector<size_t> groups;
  std::vector<std::string> group_names;
};

void find_groups(const CsvTable& table, const std::vector<std::optional<size_t>>& taken,
                 Columns& columns) {
  for (size_t i = 0; i < table.columns(); ++i) {
    const bool used = std::any_of(taken.begin(), taken.end(), [&](auto at) { return at == i; });
    if (used || table.name(i).empty()) continue;
    columns.groups.push_back(i);
    columns.group_names.emplace_back(table.name(i));
  }
}

Result<double> day_of(const CsvTable& row, size_t column, bool days) {
  const auto cell = row.cell(column);
  if (cell.empty()) return kNoDay;
  std::optional<double> day = parse_number(cell);
  if (!days || !day) {
    const auto at_ns = parse_time_ns(cell);
    day = at_ns ? std::optional(static_cast<double>(*at_ns) / kDayNs) : std::nullopt;
  }
  if (day && std::abs(*day) <= kMaxDays) return *day;
  return fail(ErrorCode::kInvalid,
              fmt::format("{}: column {}: {} is no time: write days as a number, or a date",
                          row.place(), column + 1, shown(cell)));
}

Result<HistoryTable> read_rows(CsvTable& table, const Columns& columns) {
  HistoryTable result;
  result.groups = columns.group_names;
  result.has_device = columns.unit.has_value();
  result.has_node = columns.node.has_value();
  result.has_repairs = columns.end.has_value();
  for (;;) {
    const auto more = table.next();
    if (!more) return tl::unexpected(more.error());
    if (!*more) return result;
    HistoryRow row;
    row.node = table.cell(columns.node);
    row.unit = columns.unit ? table.cell(columns.unit) : table.cell(columns.node);
    if (row.unit.empty())
      return fail(ErrorCode::kInvalid,
                  table.place() + ": this row names no unit: its device (or node) is empty");
    row.kind = table.cell(columns.kind);
    const auto begin = day_of(table, *columns.begin, columns.days);
    if (!begin) return tl::unexpected(begin.error());
    row.begin_day = *begin;
    if (columns.end) {
      const auto end = day_of(table, *columns.end, columns.days);
      if (!end) return tl::unexpected(end.error());
      row.end_day = *end;
    }
    if (row.end_day < row.begin_day)
      return fail(ErrorCode::kInvalid,
                  fmt::format("{}: it ends on day {}, before it begins on day {}", table.place(),
                              row.end_day, row.begin_day));
    for (const size_t group : columns.groups)
      if (group < table.cells()) row.groups.emplace_back(table.cell(group));
    result.rows.push_back(std::move(row));
  }
}

struct OpenTable {
  CsvTable table;
  Columns columns;  // unit and node so far
};

Result<OpenTable> open_table(const std::filesystem::path& file) {
  auto table = CsvTable::open(file);
  if (!table) return tl::unexpected(table.error());
  Columns columns;
  columns.unit = table->find({"device", "unit", "gpu", "serial", "sn", "gpu_id", "device_id"});
  columns.node = table->find({"node", "host", "server", "location", "hostname", "node_id"});
  if (!columns.unit && !columns.node)
    if (auto needed = table->require({"device"}); !needed) return tl::unexpected(needed.error());
  return OpenTable{std::move(*table), std::move(columns)};
}

}  // namespace

Result<HistoryTable> read_failures(const std::filesystem::path& file) {
  auto opened = open_table(file);
  if (!opened) return tl::unexpected(opened.error());
  auto& [table, columns] = *opened;
  columns.begin = table.find({"time_days", "day", "start_day", "days"});
  columns.days = columns.begin.has_value();
  if (!columns.begin) columns.begin = table.find({"time", "timestamp", "date"});
  if (!columns.begin)
    if (auto needed = table.require({"time_days"}); !needed) return tl::unexpected(needed.error());
  columns.end = table.find({"end_day", "repaired_day"});
  columns.kind = table.find({"kind", "class", "event", "error", "xid"});
  std::vector<std::optional<size_t>> taken{columns.unit, columns.node, columns.begin, columns.end,
                                           columns.kind};
  if (columns.end)
    for (const char* text : {"level", "description"}) taken.push_back(table.find({text}));
  find_groups(table, taken, columns);
  return read_rows(table, columns);
}

Result<HistoryTable> read_installations(const std::filesystem::path& file) {
  auto opened = open_table(file);
  if (!opened) return tl::unexpected(opened.error());
  auto& [table, columns] = *opened;
  const auto begin =
      table.require({"start_day", "start_days", "installed_days", "installed_day", "begin_day",
                     "begin_days", "from_days", "from_day", "insert_days", "time_days",
                     "install_day", "install_days", "installed", "start", "begin", "from"});
  if (!begin) return tl::unexpected(begin.error());
  columns.begin = *begin;
  columns.end =
      table.find({"end_day", "end_days", "removed_days", "removed_day", "remove_days", "remove_day",
                  "until_days", "until_day", "to_days", "to_day", "removed", "end", "until", "to"});
  find_groups(table, {columns.unit, columns.node, columns.begin, columns.end}, columns);
  return read_rows(table, columns);
}

}  // namespace tierpilot::gang
