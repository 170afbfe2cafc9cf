// Which groups a unit belongs to, from both files.
#pragma once

#include "policies/gang/rates/history_tables.h"

namespace tierpilot::gang {

// Fills columns and the services' levels, whose single one is on entry the row of `installed` that
// they are from, or kUnknownLevel. A column of the failures is a group only if it stays the same
// for a unit: else it tells of the failure. Numbers of many values become ten classes.
void set_group_levels(const HistoryTable& failures, const HistoryTable& installed,
                      FailureHistory& history);

}  // namespace tierpilot::gang
