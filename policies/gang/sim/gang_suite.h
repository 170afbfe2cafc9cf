// Gang placement policies on many clusters, job mixes and ways to fail, several seeds each.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "policies/gang/sim/gang_simulation.h"

namespace tierpilot::gang {

struct GangCell {
  uint32_t units = 16;
  uint32_t units_per_node = 4;
  FailureSetting setting = FailureSetting::kEqual;
  double mean_per_h = 2e-5;  // failures of a unit, in the mean of the fleet
  bool from_trace = false;
};

struct GangSuite {
  std::vector<GangCell> cells;
  std::vector<std::string> policies = placer_names();
  uint32_t seeds = 10;
  std::vector<Job> trace;  // empty: jobs are made up
};

// 16 to `max_units` units in nodes of 4 and 8; each failure setting; the published level of a large
// fleet and a stress level 250 times as high.
GangSuite gang_suite(uint32_t max_units);

// The second half of a trace in the manner of Philly's: what is tried is not what anything was
// tuned on. Times become hours.
Result<std::vector<Job>> trace_jobs(const std::filesystem::path& file);

// Jobs of a cell: the same for all policies.
GangScene scene_of(const GangSuite& suite, const GangCell& cell, uint64_t seed);

struct GangRun {
  size_t cell = 0;
  size_t policy = 0;
  uint64_t seed = 0;
  GangResult result;
};

// By cell, seed and policy. Seeds count from 1001.
Result<std::vector<GangRun>> run_gangs(const GangSuite& suite, uint32_t threads,
                                       const std::function<void(double)>& progress);

}  // namespace tierpilot::gang
