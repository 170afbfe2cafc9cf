// The plan of a whole step: covers of several settings and what scores decide, each replayed, and a
// search around the best. It is not worse than any rival's score, nor over a link than without it,
// unless it is to be quick: then it does not try all of them.
// Work is bounded by a count, not by a clock: the same step gives the same plan.
#pragma once

#include "policies/swap/graph.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/machine/outcome.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

inline constexpr size_t kQuickWork = 0;
inline constexpr size_t kThoroughWork = 1'200'000;

struct PlannerSettings {
  Limits limits{};
  // Operators to replay or plan in all: the time a plan takes grows with it. What every plan tries
  // first is beside it.
  size_t work = kThoroughWork;
  uint64_t seed = 1;
};

struct Planned {
  Plan plan{};
  Outcome outcome{};  // of replaying the plan
  int trials = 0;
  std::string origin{};  // what the plan was developed from: "cover" or the name of a score
};

// What fails least far, where no plan fits.
Planned plan_step(const Graph& graph, const PlannerSettings& settings);

}  // namespace tierpilot::swap
