// Pictures of simulated runs, as SVG files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "policies/sim/comparison.h"
#include "policies/sim/model/cluster_spec.h"
#include "tools/lab/evaluation.h"

namespace tierpilot::lab {

// Before minutes of runs, not after them: makes the folder where it is missing, and says why
// nothing could be written there. An empty name is none.
Status open_plots(const std::filesystem::path& folder);

Status write_plot(const std::filesystem::path& file, const std::string& svg);

// responses-WORKLOAD-NODES.svg for every cell: the distribution of response times of the first
// seed.
Status write_response_plots(const Evaluated& evaluated, const std::string& folder);

// queue-length.svg and utilisation.svg: over time, the mean over seeds and the range around it;
// responses.svg: the distribution of the first seed.
Status write_run_plots(const sim::ClusterSpec& cluster, const std::vector<sim::PolicyRun>& runs,
                       const std::string& folder);

}  // namespace tierpilot::lab
