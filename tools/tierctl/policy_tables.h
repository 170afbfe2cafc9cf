// How `tierctl policy` shows what the guard does and what it measured.
#pragma once

#include <string>
#include <vector>

#include "tools/output/output.h"

namespace tierpilot::tierctl {

// Of `policy show`: guard, events, and of one that learns here its versions.
std::vector<Table> oversight_tables(bool with_versions);
Table version_table(const std::string& rows, const std::string& title);
// `concurrent`: the second are control decisions, taken at the same time.
std::vector<Table> comparison_tables(bool concurrent);

}  // namespace tierpilot::tierctl
