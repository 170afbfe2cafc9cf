#include "policies/sim/sharing/full_load/full_load_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tierpilot::sharing {
namespace {

using nlohmann::ordered_json;

ordered_json run_json(const FullLoadRun& run) {
  return {{"policy", run.policy},
          {"seed", run.seed},
          {"allocation", run.allocation},
          {"allocation_at_capacity", run.allocation_at_capacity},
          {"given", run.given},
          {"fragmentation", run.fragmentation},
          {"pods", run.pods},
          {"left_out", run.left_out}};
}

ordered_json policy_json(const std::string& policy, const std::vector<FullLoadRun>& runs) {
  FullLoadRun sum;
  double count = 0, least = 1;
  for (const auto& run : runs) {
    if (run.policy != policy) continue;
    ++count;
    least = std::min(least, run.allocation);
    sum.allocation += run.allocation;
    sum.allocation_at_capacity += run.allocation_at_capacity;
    sum.given += run.given;
    sum.fragmentation += run.fragmentation;
    sum.left_out += run.left_out;
  }
  return {{"policy", policy},
          {"allocation", sum.allocation / count},
          {"allocation_least", least},
          {"allocation_at_capacity", sum.allocation_at_capacity / count},
          {"given", sum.given / count},
          {"fragmentation", sum.fragmentation / count},
          {"left_out", static_cast<double>(sum.left_out) / count}};
}

void add_bounds(const std::vector<FullLoadBound>& bounds, ordered_json& value) {
  value["bound_runs"] = value["bounds"] = ordered_json::array();
  double allocation = 0, at_capacity = 0, least = 1;
  for (const auto& bound : bounds) {
    value["bound_runs"].push_back({{"seed", bound.seed},
                                   {"allocation", bound.allocation},
                                   {"allocation_at_capacity", bound.allocation_at_capacity}});
    allocation += bound.allocation;
    at_capacity += bound.allocation_at_capacity;
    least = std::min(least, bound.allocation);
  }
  const auto seeds = static_cast<double>(bounds.size());
  if (!bounds.empty())
    value["bounds"].push_back({{"policy", "bound"},
                               {"allocation", allocation / seeds},
                               {"allocation_least", least},
                               {"allocation_at_capacity", at_capacity / seeds}});
}

}  // namespace

ordered_json full_load_json(const FullLoad& load) {
  const auto& runs = load.runs;
  ordered_json value{{"runs", ordered_json::array()}, {"policies", ordered_json::array()}};
  std::vector<std::string> seen;
  for (const auto& run : runs) {
    value["runs"].push_back(run_json(run));
    if (std::find(seen.begin(), seen.end(), run.policy) != seen.end()) continue;
    seen.push_back(run.policy);
    value["policies"].push_back(policy_json(run.policy, runs));
  }
  auto& policies = value["policies"];
  std::stable_sort(policies.begin(), policies.end(), [](const auto& a, const auto& b) {
    return a["allocation"] < b["allocation"];  // the worst first
  });
  add_bounds(load.bounds, value);
  return value;
}

}  // namespace tierpilot::sharing
