// What the passive probe counted, as rows of 'move stat', each figure or why it is not there.
// Internal.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "daemon/probe/passive/passive_probe.h"

namespace tierpilot::tiertool {

// A row per pair of nodes and reason; with `pairs_unavailable`, per reason.
nlohmann::ordered_json migration_rows(const MigrationCounts& counts,
                                      const std::string& pairs_unavailable);
// A row per node, and one of the faults that allocated no page.
nlohmann::ordered_json fault_rows(const FaultTimeStats& stats);
void set_quantiles(nlohmann::ordered_json& row, const Histogram& durations_ns);

}  // namespace tierpilot::tiertool
