#include "tools/output/output.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/text/printable.h"
#include "tools/output/format.h"

namespace tierpilot {
namespace {

using nlohmann::ordered_json;
constexpr int kSchema = 1;
constexpr std::string_view kGap = "  ";

struct Cell {
  std::string text;
  bool right = false;  // numbers line up at their last digit
};

// Reasons for what is not there, each told once.
class Footnotes {
 public:
  size_t number_of(const std::string& reason) {
    const auto at = std::find(reasons_.begin(), reasons_.end(), reason);
    if (at != reasons_.end()) return static_cast<size_t>(at - reasons_.begin()) + 1;
    reasons_.push_back(reason);
    return reasons_.size();
  }
  std::string text() const {
    std::string lines;
    for (size_t i = 0; i < reasons_.size(); ++i)
      lines += fmt::format("[{}] {}\n", i + 1, reasons_[i]);
    return lines;
  }

 private:
  std::vector<std::string> reasons_;
};

const ordered_json* find(const ordered_json& value, const std::string& pointer) {
  const ordered_json::json_pointer where(pointer);
  return value.contains(where) ? &value.at(where) : nullptr;
}

Cell make_cell(const ordered_json& row, const Column& column, Footnotes& notes) {
  const auto* value = find(row, column.pointer);
  if (value && !value->is_null()) return {format_cell(*value, column.format), value->is_number()};
  const auto* reason = find(row, column.pointer + "_unavailable");
  if (!reason || !reason->is_string()) return {"-", true};
  return {fmt::format("- [{}]", notes.number_of(format_cell(*reason, Format::kText))), true};
}

std::string pad(const Cell& cell, size_t width) {
  const std::string space(width - std::min(width, display_width(cell.text)), ' ');
  return cell.right ? space + cell.text : cell.text + space;
}

void append_line(std::string& text, std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  text += line + '\n';
}

std::string format_record(const ordered_json& record, const Table& table, Footnotes& notes) {
  size_t width = 0;
  for (const auto& column : table.columns) width = std::max(width, display_width(column.header));
  std::string text;
  for (const auto& column : table.columns)
    append_line(text,
                pad({column.header}, width).append(kGap) + make_cell(record, column, notes).text);
  return text;
}

std::string format_rows(const ordered_json& rows, const Table& table, Footnotes& notes) {
  const size_t columns = table.columns.size();
  std::vector<std::vector<Cell>> grid(1);
  for (const auto& column : table.columns) grid[0].push_back({column.header});
  for (const auto& row : rows) {
    auto& line = grid.emplace_back();
    for (const auto& column : table.columns) line.push_back(make_cell(row, column, notes));
  }
  std::vector<size_t> widths(columns, 0);
  for (const auto& line : grid)
    for (size_t i = 0; i < columns; ++i)
      widths[i] = std::max(widths[i], display_width(line[i].text));
  // A header stands over its numbers.
  for (size_t i = 0; i < columns; ++i)
    grid[0][i].right =
        grid.size() > 1 &&
        std::all_of(grid.begin() + 1, grid.end(), [i](const auto& line) { return line[i].right; });
  std::string text;
  for (const auto& line : grid) {
    std::string row;
    for (size_t i = 0; i < columns; ++i) row.append(i ? kGap : "").append(pad(line[i], widths[i]));
    append_line(text, row);
  }
  return text;
}

std::string dump(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace) + '\n';
}

ordered_json with_schema(const ordered_json& value, const std::vector<std::string>& warnings) {
  ordered_json document{{"schema", kSchema}};
  document.update(value);
  if (!warnings.empty()) document["warnings"] = warnings;
  return document;
}

}  // namespace

Output::Output() : out(&std::cout), err(&std::cerr) {}

ExitCode exit_code_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::kNotFound:
    case ErrorCode::kUnreachable:
      return kExitNotFound;
    default:
      return kExitFailed;
  }
}

std::string format_table(const ordered_json& value, const Table& table) {
  Footnotes notes;
  std::string text = table.title.empty() ? "" : table.title + '\n';
  const auto* rows = find(value, table.rows);
  if (rows && rows->is_object())
    text += format_record(*rows, table, notes);
  else if (!table.empty.empty() && (!rows || rows->empty()))
    text += table.empty + '\n';
  else
    text += format_rows(rows ? *rows : ordered_json::array(), table, notes);
  return text + notes.text();
}

int print(const Output& output, const ordered_json& value, const std::vector<Table>& tables,
          const std::vector<std::string>& warnings) {
  if (output.json) {
    *output.out << dump(with_schema(value, warnings));
  } else {
    bool first = true;
    for (const auto& table : tables) {
      *output.out << (first ? "" : "\n") << format_table(value, table);
      first = false;
    }
    for (const auto& warning : warnings) *output.err << "warning: " << printable(warning) << '\n';
  }
  if (const int code = finish(output); code != kExitOk) return code;
  return warnings.empty() ? kExitOk : kExitDegraded;
}

int finish(const Output& output) {
  if (output.out->flush()) return kExitOk;
  return print_error(output, {ErrorCode::kIo, "standard output takes no more: is the disk full?"});
}

int print_error(const Output& output, const Error& error) {
  if (output.json)
    *output.err << dump(
        {{"schema", kSchema},
         {"error", {{"code", error_code_name(error.code)}, {"message", error.message}}}});
  else
    *output.err << "error: " << error.message << '\n';
  return exit_code_for(error.code);
}

void set_or_unavailable(ordered_json& object, const std::string& key, std::optional<double> value,
                        std::string_view reason) {
  object[key] = value ? ordered_json(*value) : ordered_json(nullptr);
  if (!value) object[key + "_unavailable"] = reason;
}

}  // namespace tierpilot
