// A CSV file with a header, row by row, by libcsv (RFC 4180 with its usual relaxations: quotes,
// doubled quotes, line ends within quotes, CR LF, empty lines).
#pragma once

#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tierpilot {

class CsvTable {
 public:
  // Reads the header. The separator is the one of comma, semicolon and tab that it has most of.
  // `what` it is begins the messages.
  static Result<CsvTable> open(const std::filesystem::path& path, std::string what = "table");
  CsvTable(CsvTable&&) noexcept;
  ~CsvTable();

  // The first of `names` that the header has; letter case does not matter.
  std::optional<size_t> find(std::initializer_list<std::string_view> names) const;
  // The same; kInvalid names the columns that are there.
  Result<size_t> require(std::initializer_list<std::string_view> names) const;

  // Goes to the next row that is not empty; false at the end.
  Result<bool> next();
  // A cell of this row; "" where the row is too short or the column is not there.
  std::string_view cell(std::optional<size_t> column) const;
  // How many this row has; a row may be shorter or longer than the header.
  size_t cells() const;
  size_t columns() const;
  std::string_view name(size_t column) const;
  // "FILE:LINE" where this row begins; before the first row the header's.
  std::string place() const;

 private:
  struct State;
  explicit CsvTable(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tierpilot
