// The policies that need no learning. Ties are broken by a seeded generator, so that equal nodes
// share equal work and a run can be repeated.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "policies/policy.h"

namespace tierpilot {

std::unique_ptr<Policy> make_random_policy(uint64_t seed);
std::unique_ptr<Policy> make_round_robin_policy();
// Fewest assigned units per unit.
std::unique_ptr<Policy> make_least_loaded_policy(uint64_t seed);
// Most of the task's bytes in fast memory, then in slow memory, then the least load.
std::unique_ptr<Policy> make_locality_greedy_policy(uint64_t seed);
// Highest locality_load_score.
std::unique_ptr<Policy> make_locality_load_policy(uint64_t seed);

// Share of the data at hand (slow memory counts half) minus half the load after taking the task, in
// tasks per unit.
double locality_load_score(const TaskFeatures& task, const NodeState& node);

// The decision when no policy answered in time: locality-load, first node among equals. Stateless,
// microseconds, callable from any thread.
Decision fallback_decide(const View& view);
// In place of a network, whose fault it tells.
Decision fallback_decide(const View& view, DecisionFault fault, std::string_view why);

}  // namespace tierpilot
