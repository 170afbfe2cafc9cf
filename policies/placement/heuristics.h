// The policies that need no learning. Ties are broken by a seeded generator, so that equal nodes
// share equal work and a run can be repeated.
#pragma once

#include <cstdint>
#include <memory>

#include "policies/interface/policy.h"

namespace tierpilot {

std::unique_ptr<Policy> make_random_policy(uint64_t seed);
std::unique_ptr<Policy> make_round_robin_policy();
// Fewest assigned units per unit.
std::unique_ptr<Policy> make_least_loaded_policy(uint64_t seed);
// Most of the task's bytes in fast memory, then in slow memory, then the least load.
std::unique_ptr<Policy> make_locality_greedy_policy(uint64_t seed);
// The same, by delay scheduling (policies/scheduling/delay.h): waits where a full node has more of
// them.
std::unique_ptr<Policy> make_delay_locality_policy(uint64_t seed);
// Most of the data at hand, less the load.
std::unique_ptr<Policy> make_locality_load_policy(uint64_t seed);

}  // namespace tierpilot
