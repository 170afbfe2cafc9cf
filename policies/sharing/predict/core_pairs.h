// What trainings on cores keep of their speed beside each other, from pairs as `tierctl predictor
// collect --pairs` measures them: a prior of slow-downs, and how good it is.
#pragma once

#include "base/result.h"
#include "policies/sharing/interference/pair_prior.h"
#include "policies/sharing/predict/pairs/pair_data.h"

namespace tierpilot::sharing {

// The card of pairs that run in turn on one core, as neighbours on a unit do.
inline constexpr const char* kOneCore = "one core";

bool is_of_cores(const std::string& card);

// Whether all jobs tell what they use alone.
bool tell_use(const PairData& data);

// Ridge regression of ln(kept) on pair_features(), by the pairs of one core. What is left beyond
// the noise of measuring is a third each the victim's, the neighbour's and the pair's: where each
// training is in one pair, nothing tells them apart. kInvalid: fewer than ten such pairs, or some
// that do not tell what they use.
Result<PairPrior> fit_pair_prior(const PairData& data);

// For each card what is kept, split by model; the default is the prior.
std::vector<Study> core_pair_studies(const PairData& data);

}  // namespace tierpilot::sharing
