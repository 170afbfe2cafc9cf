// Searches the weights of what a placement costs others (policies/placement/dqn/externality.h) by
// simulation: the cross-entropy method (de Boer, Kroese, Mannor, Rubinstein: Annals of Operations
// Research 134, 2005) on the mean response time itself, which no single decision shows.
#pragma once

#include <functional>
#include <vector>

#include "policies/placement/dqn/externality.h"
#include "policies/sim/evaluation/training_mix.h"

namespace tierpilot::sim {

struct SearchSettings {
  ExternalityWeights start = delay_finish_externality();
  uint32_t generations = 60;  // 0: no search, the weights that it would start from
  uint32_t population = 48;   // of each
  uint32_t runs = 192;        // that are drawn
  uint32_t runs_each = 48;    // of them, in turn, for one generation
  uint32_t tasks = 800;       // of each run
  // So many times as much weighs what is worse than the best heuristic.
  double worse_factor = 3;
};

struct Generation {
  uint32_t number = 0;  // from 1
  double cost = 0;      // of the best quarter: ln of response over the best heuristic's, as weighed
};

// Equal settings and states of `random` give equal weights, whatever the number of threads. False
// from `each` ends it early.
Result<ExternalityWeights> search_externality(const SearchSettings& settings, FeatureMask features,
                                              uint32_t threads, SeededRandom& random,
                                              const std::function<bool(const Generation&)>& each);

// Finish plus externality, the least of all candidates: the dqn without its network.
std::unique_ptr<Policy> make_externality_policy(const ExternalityWeights& weights,
                                                FeatureMask features);

}  // namespace tierpilot::sim
