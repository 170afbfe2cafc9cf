// Rows of the two files before they are put together.
#pragma once

#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/gang/rates/history.h"
#include "policies/gang/rates/history_reader.h"

namespace tierpilot::gang {

// Numbers for names, in the order of their first appearance.
class Names {
 public:
  uint32_t number(std::string_view name) {
    const auto [found, is_new] = numbers_.try_emplace(std::string(name), names_.size());
    if (is_new) names_.emplace_back(name);
    return found->second;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::map<std::string, uint32_t, std::less<>> numbers_;
  std::vector<std::string> names_;
};

inline constexpr double kNoDay = std::numeric_limits<double>::quiet_NaN();

struct HistoryRow {
  std::string unit, node, kind;
  double begin_day = kNoDay;        // NaN: no failure, only a unit
  double end_day = kNoDay;          // of the repair or the service; NaN: not told
  std::vector<std::string> groups;  // of the first columns; a short row has no more
};

struct HistoryTable {
  std::vector<std::string> groups;  // names of the columns
  bool has_device = false;
  bool has_node = false;
  bool has_repairs = false;
  std::vector<HistoryRow> rows;
};

Result<HistoryTable> read_failures(const std::filesystem::path& file);
Result<HistoryTable> read_installations(const std::filesystem::path& file);

}  // namespace tierpilot::gang
