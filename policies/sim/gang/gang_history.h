// What a cluster recorded of its training jobs and failures, as scenes to learn from.
#pragma once

#include <filesystem>

#include "base/result.h"
#include "policies/sim/gang/gang_suite.h"

namespace tierpilot::gang {

struct GangHistory {
  std::vector<Job> jobs;  // by arrival, as they ran
  // Of each unit, in nodes of `units_per_node`: how often it failed in `hours`. Empty: not
  // recorded.
  std::vector<double> failures = {};
  double hours = 0;
  uint32_t units_per_node = 8;
};

// The gangs in what `tierctl history export` wrote. What each did is the time from its start to its
// end, which its restarts have a part in, and at least 0.1 and at most 72 hours. Other tasks, and
// gangs that did not end, are left out. kInvalid names file and line; a file without a gang is one.
Result<std::vector<Job>> read_gang_jobs(const std::filesystem::path& file);

// Jobs drawn from those that ran, at the load that all cells of suites have. Of recorded failures
// each unit of a cluster of the same size has its own, and others whole nodes that are drawn; true
// rates are drawn from what the counts leave open. Without them rates are the cell's.
GangScene history_scene(const GangHistory& history, GangSuite suite, GangCell cell, uint64_t seed);

}  // namespace tierpilot::gang
