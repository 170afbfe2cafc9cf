// What `quickstart quality` shows and writes: tables, JSON and a picture.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tools/demo/quality/allocator_run.h"

namespace tierpilot::demo {

// {"schema": 1, "policies", "jobs"}: see docs/quality-run.md.
nlohmann::ordered_json quality_report(const std::vector<AllocatorRun>& runs);
void print_quality_report(std::ostream& out, const nlohmann::ordered_json& report);
// Loss left over time and who had the cores, as a whole SVG document.
std::string quality_picture(const std::vector<AllocatorRun>& runs);

}  // namespace tierpilot::demo
