// Several rounds of the same policies: what they come to, and whether a difference is more than
// noise.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/demo/policy_run.h"

namespace tierpilot::demo {

// The policies of a round: each round another one is the first, so that a drift of the machine does
// not meet the same one each time.
std::vector<std::string> order_of_round(std::vector<std::string> policies, size_t round);

// One policy's rounds as one run of all their tasks. At least one round; all of one policy.
PolicyRun pooled(const std::vector<PolicyRun>& rounds);

// The mean response of one policy over another's, by rounds, which had the same tasks.
struct Difference {
  double percent = 0;        // of the geometric mean of the rounds' ratios
  double low = 0, high = 0;  // 95 %, Student's t on the logarithms
  size_t rounds = 0;
  bool more_than_noise() const { return low > 0 || high < 0; }
};
// Nothing with fewer than two rounds, as nobody can tell then, or with different ones.
std::optional<Difference> response_difference(const PolicyRun& of, const PolicyRun& against);

// Of those that do not learn, the one with the shortest mean response; null: there is none.
const PolicyRun* best_heuristic(const std::vector<PolicyRun>& runs);

}  // namespace tierpilot::demo
