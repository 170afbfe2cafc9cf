// Every policy that a step can be replayed under, by name.
#pragma once

#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/swap/graph.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/machine/outcome.h"

namespace tierpilot::swap {

struct PolicyInfo {
  std::string_view name;
  // "online": knows what the program has done; "planner": has read the whole step first; "bound":
  // no policy can follow it.
  std::string_view kind;
  std::string_view says;
};
const std::vector<PolicyInfo>& policy_infos();

struct Replayed {
  PolicyInfo policy;
  Outcome outcome;
  int runs = 1;          // replays that the outcome is the mean of, or plans tried
  std::string origin{};  // what a planner's plan was developed from: "cover" or a score's name
};

struct ReplaySettings {
  Limits limits{};
  uint64_t seed = 1;
};

// kNotFound for a name that is not there.
Result<Replayed> replay(const Graph& graph, std::string_view policy,
                        const ReplaySettings& settings);

}  // namespace tierpilot::swap
