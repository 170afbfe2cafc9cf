// Results of shares over time as JSON.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/sharing/job_source.h"
#include "policies/sim/sharing/time_simulation.h"
#include "policies/sim/sharing/timed_jobs.h"

namespace tierpilot::sharing {

// For jobs of traces: what lasts for days is not looked at every ten seconds.
inline constexpr double kTracePeriodPart = 0.002;

struct TimedSuite {
  std::vector<std::string> policies;  // empty: all of timed_policies()
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;      // settings are chosen with those below
  std::vector<JobSource> sources;  // empty: jobs are drawn
  TimedSettings settings;
  TimedRules rules;
  std::function<void(double share)> progress;
};

// {"settings", "jobs": [a source's jobs as simulated, and what was skipped of it], "policies":
// [{"jobs", "policy", means over seeds, the worst seed of promises kept}], the fewest promises
// kept first, "bounds": [{"jobs", "policy": "bound", "holds_for", means over seeds of what no
// policy does better}]}. kNotFound: no such policy.
Result<nlohmann::ordered_json> run_timed_suite(const TimedSuite& suite);

}  // namespace tierpilot::sharing
