#include "policies/gang/rates/group_levels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "base/table/cell.h"

namespace tierpilot::gang {
namespace {

constexpr size_t kMaxNumbers = 20;  // more different ones are classed
constexpr size_t kClasses = 10;
constexpr double kMaxChanging = 0.1;  // units, of those with several failures, whose value changes

struct Column {
  std::string name;
  // A cell; "": not known.
  std::optional<size_t> of_installed;                    // which group of that table
  std::unordered_map<std::string, std::string> of_unit;  // from the failures
  std::unordered_map<std::string, std::string> of_node;
};

std::string_view cell_of(const HistoryRow& row, size_t group) {
  if (group == SIZE_MAX) return row.node;
  return group < row.groups.size() ? std::string_view(row.groups[group]) : std::string_view();
}

// False: it tells of failures, not of units.
bool read_of_units(const HistoryTable& failures, size_t group, Column& column) {
  std::unordered_map<std::string, uint32_t> rows;
  size_t changing = 0;
  size_t repeated = 0;
  for (const auto& row : failures.rows) {
    const auto cell = cell_of(row, group);
    if (cell.empty()) continue;
    const auto [known, is_new] = column.of_unit.try_emplace(row.unit, cell);
    repeated += ++rows[row.unit] == 2;
    if (!is_new && known->second != cell) {
      changing += rows[row.unit] < UINT32_MAX / 2;
      rows[row.unit] = UINT32_MAX / 2;  // counted
    }
    if (!row.node.empty()) column.of_node.try_emplace(row.node, cell);
  }
  return group == SIZE_MAX || static_cast<double>(changing) <=
                                  kMaxChanging * static_cast<double>(std::max<size_t>(repeated, 1));
}

bool same_name(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

void add_installed_column(const HistoryTable& installed, size_t group,
                          std::vector<Column>& columns) {
  const std::string name = group == SIZE_MAX ? "node" : installed.groups[group];
  auto found = std::find_if(columns.begin(), columns.end(),
                            [&](const Column& column) { return same_name(column.name, name); });
  if (found == columns.end())
    found = columns.insert(columns.end(),
                           Column{.name = name, .of_installed = {}, .of_unit = {}, .of_node = {}});
  if (!found->of_installed) found->of_installed = group;
}

std::vector<Column> find_columns(const HistoryTable& failures, const HistoryTable& installed) {
  std::vector<Column> columns;
  if (failures.has_device && failures.has_node) {
    columns.push_back({.name = "node", .of_installed = {}, .of_unit = {}, .of_node = {}});
    read_of_units(failures, SIZE_MAX, columns.back());
  }
  for (size_t group = 0; group < failures.groups.size(); ++group) {
    Column column{.name = failures.groups[group], .of_installed = {}, .of_unit = {}, .of_node = {}};
    if (read_of_units(failures, group, column)) columns.push_back(std::move(column));
  }
  if (installed.has_device && installed.has_node)
    add_installed_column(installed, SIZE_MAX, columns);
  for (size_t group = 0; group < installed.groups.size(); ++group)
    add_installed_column(installed, group, columns);
  return columns;
}

std::string value_for(const Column& column, const Service& service, const HistoryTable& installed,
                      const std::string& unit) {
  const int32_t row = service.levels.front();
  if (row >= 0 && column.of_installed)  // no other file would know
    return std::string(cell_of(installed.rows[static_cast<size_t>(row)], *column.of_installed));
  if (const auto found = column.of_unit.find(unit); found != column.of_unit.end())
    return found->second;
  if (row >= 0)
    if (const auto found = column.of_node.find(installed.rows[row].node);
        found != column.of_node.end())
      return found->second;
  return {};
}

// Numbers as the upper ends of ten classes of about as many services.
void class_numbers(std::vector<std::string>& values) {
  std::vector<double> numbers;
  for (const auto& value : values) {
    if (value.empty()) continue;
    const auto number = parse_number(value);
    if (!number) return;
    numbers.push_back(*number);
  }
  std::sort(numbers.begin(), numbers.end());
  auto distinct = numbers;
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (distinct.size() <= kMaxNumbers) return;
  std::vector<double> ends;
  for (size_t i = 1; i <= kClasses; ++i)
    ends.push_back(numbers[i * (numbers.size() - 1) / kClasses]);
  for (auto& value : values)
    if (!value.empty())
      value =
          fmt::format("to {:g}", *std::lower_bound(ends.begin(), ends.end(), *parse_number(value)));
}

}  // namespace

void set_group_levels(const HistoryTable& failures, const HistoryTable& installed,
                      FailureHistory& history) {
  const auto columns = find_columns(failures, installed);
  std::vector<std::vector<int32_t>> levels(history.services.size());
  for (const auto& column : columns) {
    std::vector<std::string> values;
    for (const auto& service : history.services)
      values.push_back(value_for(column, service, installed, history.units[service.unit]));
    const bool is_node = column.name == "node";
    if (!is_node) class_numbers(values);
    Names names;
    if (std::all_of(values.begin(), values.end(), [](const auto& value) { return value.empty(); }))
      continue;  // else each service would have a level of each of thousands of empty columns
    for (size_t i = 0; i < values.size(); ++i)
      levels[i].push_back(values[i].empty() ? kUnknownLevel
                                            : static_cast<int32_t>(names.number(values[i])));
    history.columns.push_back({column.name, names.names()});
    history.has_nodes = history.has_nodes || is_node;
  }
  for (size_t i = 0; i < history.services.size(); ++i) history.services[i].levels = levels[i];
}

}  // namespace tierpilot::gang
