// The policies that go by an estimate of times; the strongest without learning where nodes differ.
#pragma once

#include <cstdint>
#include <memory>

#include "policies/interface/policy.h"

namespace tierpilot {

// The candidate whose estimated finish (policies/scheduling/estimate.h) is the earliest; equals
// share by a seeded generator.
std::unique_ptr<Policy> make_earliest_finish_policy(uint64_t seed);
// The same with marginal_cost_s: what others pay counts, too.
std::unique_ptr<Policy> make_least_cost_policy(uint64_t seed);
// The same with shared_finish_s, by delay scheduling: waits for a full node where that costs less.
// fallback_decide but for its ties.
std::unique_ptr<Policy> make_delay_finish_policy(uint64_t seed);

}  // namespace tierpilot
