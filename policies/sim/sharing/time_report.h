// Results of shares over time as JSON.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/sharing/time_simulation.h"

namespace tierpilot::sharing {

struct TimedSuite {
  std::vector<std::string> policies;  // empty: all, and the clairvoyant
  uint32_t seeds = 10;
  uint64_t first_seed = 1001;  // settings are chosen with those below
  TimedSettings settings;
  TimedRules rules;
  std::function<void(double share)> progress;
};

// {"settings", "policies": [{"policy", means over seeds, the worst seed of promises kept}]}, the
// fewest promises kept first. kNotFound: no such policy.
Result<nlohmann::ordered_json> run_timed_suite(const TimedSuite& suite);

}  // namespace tierpilot::sharing
