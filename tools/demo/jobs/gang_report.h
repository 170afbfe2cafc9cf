// What `quickstart jobs` shows and writes.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "tools/demo/jobs/gang_run.h"

namespace tierpilot::demo {

// Of its own loss: what a job that failed may end away from one that did not.
inline constexpr double kLossTolerance = 0.01;

// {"schema": 1, "policies", "jobs", "units"}: see docs/jobs-run.md. `undisturbed` ran without the
// failing unit.
nlohmann::ordered_json gang_report(const GangRun& undisturbed, const std::vector<GangRun>& runs);
// "ac: mlp ended with loss 0.5, undisturbed 0.4"; empty: all is as it should be.
std::vector<std::string> gang_faults(const nlohmann::ordered_json& report);
void print_gang_report(std::ostream& out, const nlohmann::ordered_json& report);

}  // namespace tierpilot::demo
