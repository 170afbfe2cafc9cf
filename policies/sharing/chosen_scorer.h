// `share` at full load.
#pragma once

#include <memory>

#include "policies/sharing/placement.h"

namespace tierpilot::sharing {

// Of several ways to place the one that fills the cluster, or a part of it where it is large, best
// in the mean with draws of what usually comes (Rice, The Algorithm Selection Problem, Advances in
// Computers 15, 1976); of about equals, and where no cluster is known, ShareScorer.
std::unique_ptr<Scorer> choose_scorer(const Usual& usual);

}  // namespace tierpilot::sharing
