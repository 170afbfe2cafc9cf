// One task in tables.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tools/output/output.h"

namespace tierpilot::tierctl {

// Of "/task", as task_json() gives it: what it was submitted with, its ranks, what it said and what
// was served to it, its end. Only what it has.
std::vector<Table> task_tables(const nlohmann::ordered_json& task);

}  // namespace tierpilot::tierctl
