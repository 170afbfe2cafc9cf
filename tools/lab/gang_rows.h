// The runs of the suite gangs as rows of figures, and what they say of the goals.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "policies/sim/gang/gang_suite.h"

namespace tierpilot::lab {

// Of each cell and policy: estimates of all measures, and of their differences from the best rival
// of the cell, paired by seed.
nlohmann::ordered_json gang_rows_json(const std::vector<gang::GangRun>& runs,
                                      const gang::GangSuite& suite);
// Of each policy over all rows: how far from the best rival of the row.
nlohmann::ordered_json gang_overall_json(const nlohmann::ordered_json& rows,
                                         const gang::GangSuite& suite);
// Of each policy and level of failures: against the capacity-aware and the interference-aware
// heuristic where rates differ, medians of rows; against the best of all; against the clairvoyant.
nlohmann::ordered_json gang_goals_json(const std::vector<gang::GangRun>& runs,
                                       const gang::GangSuite& suite);
// Sums of each policy over all cells of a kind, against another policy's, paired by seed.
// `kind_of` names a cell's kind.
nlohmann::ordered_json gang_sums_json(
    const std::vector<gang::GangRun>& runs, const gang::GangSuite& suite, const std::string& rival,
    const std::function<std::string(const gang::GangCell&)>& kind_of);
// made up, large, trace.
const char* jobs_name(const gang::GangCell& cell);
// There is none where nothing was lost in any run.
bool has_mean(const nlohmann::ordered_json& estimate);

}  // namespace tierpilot::lab
