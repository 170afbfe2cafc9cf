// What `quickstart sharing` shows at its end and writes.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "tools/demo/sharing/sharing_run.h"

namespace tierpilot::demo {

// {"schema": 1, "enforcement", "policies", "jobs"}: see docs/sharing-run.md.
nlohmann::ordered_json sharing_report(const std::vector<SharingRun>& runs);
void print_sharing_report(std::ostream& out, const nlohmann::ordered_json& report);

}  // namespace tierpilot::demo
