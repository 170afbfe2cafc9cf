#include "base/table/csv_table.h"

#include <csv.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <vector>

#include "base/table/cell.h"
#include "base/table/line_reader.h"

namespace tierpilot {
namespace {

constexpr size_t kMaxColumns = 10'000;

struct Row {
  size_t line = 0;
  std::string text;          // of all cells
  std::vector<size_t> ends;  // of each cell in `text`
  size_t cells() const { return ends.size(); }
  std::string_view cell(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(text).substr(begin, ends[i] - begin);
  }
};

bool same_word(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

char separator_of(std::string_view header) {
  const auto count = [header](char c) { return std::ranges::count(header, c); };
  return *std::ranges::max_element(std::string_view(",;\t"), {}, count);
}

// A quote that is never closed would make one cell of the rest of the file.
void* bounded_realloc(void* at, size_t bytes) {
  return bytes > 2 * kMaxLineBytes ? nullptr : std::realloc(at, bytes);
}

}  // namespace

struct CsvTable::State {
  explicit State(LineReader reader) : lines(std::move(reader)) {
    csv_init(&parser, 0);
    csv_set_realloc_func(&parser, bounded_realloc);
  }
  ~State() { csv_free(&parser); }

  static void take_cell(void* bytes, size_t size, void* self) {
    auto& row = static_cast<State*>(self)->building;
    if (row.ends.size() >= kMaxColumns) return;
    row.text.append(static_cast<const char*>(bytes), size);
    row.ends.push_back(row.text.size());
  }
  static void take_row(int, void* self) {
    auto& state = *static_cast<State*>(self);
    std::swap(state.row, state.building);
    state.building = Row{};
    state.complete = true;
  }

  Result<bool> next() {
    complete = false;
    while (!complete) {
      auto line = lines.next();
      if (!line) return tl::unexpected(line.error());
      if (!*line) return finish();
      if (building.ends.empty() && parser.pstate == 0) building.line = lines.number();
      if (delimiter == 0 && !(*line)->empty())
        csv_set_delim(&parser, static_cast<unsigned char>(delimiter = separator_of(**line)));
      if (csv_parse(&parser, (*line)->data(), (*line)->size(), take_cell, take_row, this) !=
              (*line)->size() ||
          csv_parse(&parser, "\n", 1, take_cell, take_row, this) != 1)
        return fail(ErrorCode::kInvalid,
                    fmt::format("{} {}:{}: {}; is a quote in the row never closed?", lines.what(),
                                lines.path(), building.line, csv_strerror(csv_error(&parser))));
    }
    return true;
  }

  Result<bool> finish() {
    csv_fini(&parser, take_cell, take_row, this);
    return complete;
  }

  LineReader lines;
  csv_parser parser{};
  char delimiter = 0;
  Row header, row, building;
  bool complete = false;
};

CsvTable::CsvTable(std::unique_ptr<State> state) : state_(std::move(state)) {}
CsvTable::CsvTable(CsvTable&&) noexcept = default;
CsvTable::~CsvTable() = default;

Result<CsvTable> CsvTable::open(const std::filesystem::path& path, std::string what) {
  auto lines = LineReader::open(path, std::move(what));
  if (!lines) return tl::unexpected(lines.error());
  auto state = std::make_unique<State>(std::move(*lines));
  auto more = state->next();
  if (!more) return tl::unexpected(more.error());
  if (!*more)
    return fail(ErrorCode::kInvalid,
                fmt::format("{} {}: it is empty; a line with the columns' names is needed",
                            state->lines.what(), path.string()));
  state->header = std::move(state->row);
  return CsvTable(std::move(state));
}

std::optional<size_t> CsvTable::find(std::initializer_list<std::string_view> names) const {
  for (const auto name : names)
    for (size_t i = 0; i < state_->header.cells(); ++i)
      if (same_word(state_->header.cell(i), name)) return i;
  return std::nullopt;
}

Result<size_t> CsvTable::require(std::initializer_list<std::string_view> names) const {
  if (const auto found = find(names)) return *found;
  std::string there;
  for (size_t i = 0; i < std::min<size_t>(state_->header.cells(), 20); ++i)
    there += (i ? ", " : "") + shown(state_->header.cell(i));
  return fail(ErrorCode::kInvalid,
              fmt::format("{} {}:{}: no column is called '{}'; there are {}", state_->lines.what(),
                          state_->lines.path(), state_->header.line, *names.begin(), there));
}

Result<bool> CsvTable::next() {
  return state_->next();
}

std::string_view CsvTable::cell(std::optional<size_t> column) const {
  return column && *column < state_->row.cells() ? state_->row.cell(*column) : std::string_view();
}

size_t CsvTable::cells() const {
  return state_->row.cells();
}

size_t CsvTable::columns() const {
  return state_->header.cells();
}

std::string_view CsvTable::name(size_t column) const {
  return state_->header.cell(column);
}

std::string CsvTable::place() const {
  return fmt::format("{}:{}", state_->lines.path(), state_->row.line);
}

}  // namespace tierpilot
