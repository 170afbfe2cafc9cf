// Gang placement policies on many clusters, job mixes and ways to fail, several seeds each.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "policies/sim/gang/gang_simulation.h"

namespace tierpilot::gang {

struct GangCell {
  uint32_t units = 16;
  uint32_t units_per_node = 4;
  FailureSetting setting = FailureSetting::kEqual;
  double mean_per_h = 2e-5;  // failures of a unit, in the mean of the fleet
  bool from_trace = false;
  bool with_data = false;   // that jobs need where they run
  bool large_jobs = false;  // made-up ones of 16 times as many units
  // Of a fleet's record, when the first job comes; none: failures are drawn.
  std::optional<double> from_day = {};
};

struct GangSuite {
  std::vector<GangCell> cells;
  std::vector<std::string> policies = placers().names();
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;
  std::vector<Job> trace;  // empty: jobs are made up
  // A unit is out for the median time that servers were in a published record of 400 of them.
  Costs costs{.repair_h = 32};
  // Empty: scene_of.
  std::function<GangScene(const GangCell& cell, uint64_t seed)> make_scene = {};
};

// 16 to `max_units` units in nodes of 4 and 8; each failure setting; the published level of a large
// fleet and a stress level 250 times as high. Then the same in nodes of 8 where rates differ, of
// jobs whose data is on some of the nodes.
GangSuite gang_suite(uint32_t max_units);

// Half of a trace in the manner of Philly's, by arrival: what is tried is not what anything was
// trained on. Times become hours.
enum class TraceHalf : uint8_t { kFirst, kSecond };
Result<std::vector<Job>> trace_jobs(const std::filesystem::path& file, TraceHalf half);

// The jobs of a cell, at the load that all cells have; their time begins with the first hour.
std::vector<Job> jobs_of(const GangSuite& suite, const GangCell& cell, uint64_t seed);
// Jobs and failures of a cell: the same for all policies. Another `episode` than 0 has other jobs,
// and other failures at the same rates: the same cluster at another time.
GangScene scene_of(const GangSuite& suite, const GangCell& cell, uint64_t seed,
                   uint64_t episode = 0);

struct GangRun {
  size_t cell = 0;
  size_t policy = 0;
  uint64_t seed = 0;
  GangResult result;
};

// The policy of a name for a cell and a seed; called by several threads.
using PlacerMaker = std::function<Result<std::unique_ptr<Placer>>(
    const std::string& name, const GangCell& cell, uint64_t seed)>;

// By cell, seed and policy.
Result<std::vector<GangRun>> run_gangs(const GangSuite& suite, const PlacerMaker& make_policy,
                                       uint32_t threads,
                                       const std::function<void(double)>& progress);

}  // namespace tierpilot::gang
