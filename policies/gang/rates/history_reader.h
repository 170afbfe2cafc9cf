// A fleet's failures from CSV files, whose columns may stand in any order.
//
// Failures: time_days (or time: seconds or a date), device, node, kind; every other column is a
// group. Either device or node may be missing. A row without a time only says that there is such a
// unit. With start_day in place of time_days, end_day is when the repair ended: the unit is out of
// service until then (to the end of the record where it is empty), `class` is the kind, and level
// and description are no groups.
//
// Installations: device (or node), start_day, end_day (empty: to the end of the record), node, and
// groups. Other usual names of these columns are known, too.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "policies/gang/rates/history.h"

namespace tierpilot::gang {

struct HistoryFiles {
  std::filesystem::path failures;
  std::filesystem::path installed{};  // empty: all units are in service all the time
  std::optional<uint32_t> fleet{};    // units there are: those that no file names never failed
};

// kInvalid names file, line and cell. Nothing of what is in the files can take more memory than a
// few times their size; `fleet` is at most 10,000,000.
Result<FailureHistory> read_failure_history(const HistoryFiles& files);

}  // namespace tierpilot::gang
