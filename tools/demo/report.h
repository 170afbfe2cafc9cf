// What the demonstration shows and writes: one JSON value, and the same as tables.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <vector>

#include "tools/demo/policy_run.h"

namespace tierpilot::demo {

struct RunFacts {
  uint64_t seed = 0;
  size_t nodes = 0;
  size_t cpus = 0;
  size_t rounds = 1;
  size_t tasks = 0;  // of each policy in each round
  size_t datasets = 0;
  uint64_t dataset_bytes = 0;
  uint64_t fast_budget_bytes = 0;  // of each node
  double load_at_start = 0;        // the machine's load average, without us
};

// {"schema": 1, "run", "slow_tier", "tiers", "policies", "comparison"}. A figure that could not be
// measured is null, with the reason in "<key>_unavailable" beside it.
nlohmann::ordered_json report_json(const RunFacts& facts, const nlohmann::ordered_json& tiers,
                                   const std::vector<PolicyRun>& runs);

// How the learned policy compares, in responses and in rewards; empty when there is nothing to
// compare.
std::string comparison(const std::vector<PolicyRun>& runs);

void print_report(std::ostream& out, const nlohmann::ordered_json& report);

}  // namespace tierpilot::demo
