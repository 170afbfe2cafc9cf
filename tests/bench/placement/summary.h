// What runs amount to: shares of the oracle's throughput, medians over rounds.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tests/bench/placement/row.h"

namespace tierpilot::bench {

// All rows of one program in one round.
struct ProgramRound {
  ProgramKind program;
  std::vector<std::pair<RowKind, Result<RowRun>>> rows;
};

// {"schema": 1, "programs": [{"program", "rows": [...]}]}: medians, and per figure the smallest and
// the largest; what could not be had is null with the reason beside it.
nlohmann::ordered_json summarise(const std::vector<ProgramRound>& rounds);

// Every tick of every run, for plots.
nlohmann::ordered_json timelines(const std::vector<ProgramRound>& rounds);

}  // namespace tierpilot::bench
