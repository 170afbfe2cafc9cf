// Several policies on the same workloads: a run for each policy and seed, means over seeds with
// confidence intervals, and differences paired by seed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policies/sim/player.h"
#include "policies/sim/workload_source.h"

namespace tierpilot::sim {

struct ComparisonOptions {
  std::vector<std::string> policies;
  uint32_t seeds = 1;    // 1 to this many
  std::string baseline;  // one of the policies; empty: the first
  PlayerMaker make_player;
  // Who places gangs, by seed; empty: as RunOptions.
  std::function<Result<std::unique_ptr<gang::Placer>>(uint64_t seed)> make_gang_placer;
  // Share of all runs that is done; false ends the comparison.
  std::function<bool(double)> progress;
};

struct PolicyRun {
  std::string policy;
  uint64_t seed = 0;
  RunResult result;
};

// Single response times are kept for the first seed only.
Result<std::vector<PolicyRun>> compare(const ClusterSpec& cluster, const WorkloadSource& source,
                                       const ComparisonOptions& options);

// The mean over seeds, and half the width of its 95 % confidence interval by Student's t;
// no interval for one seed.
struct Estimate {
  double mean = 0;
  std::optional<double> half_width;
};
Estimate estimate(const std::vector<double>& values);

// A run as a row: every count and measure.
nlohmann::ordered_json run_json(const PolicyRun& run);
inline constexpr std::string_view kNoTask = "no task succeeded";
// {"mean", "ci95"}, null with the reason beside it where there are no values, or only one.
nlohmann::ordered_json estimate_json(const std::vector<double>& values,
                                     std::string_view why_none = kNoTask);

// {"runs": [a row each], "policies": [means with intervals], "differences": [relative to the
// baseline, paired by seed]}.
nlohmann::ordered_json comparison_json(const std::vector<PolicyRun>& runs,
                                       const std::string& baseline);

}  // namespace tierpilot::sim
