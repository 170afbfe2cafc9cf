// `share` at full load.
#pragma once

#include <memory>
#include <vector>

#include "policies/sharing/placement.h"

namespace tierpilot::sharing {

// Of several ways to place the one that fills the cluster, or a part of it where it is large, best
// in the mean with draws of what usually comes (Rice, The Algorithm Selection Problem, Advances in
// Computers 15, 1976); of about equals, and where no cluster is known, ShareScorer.
std::unique_ptr<Scorer> choose_scorer(const Usual& usual);

// So many of them in their order, of all kinds about as many as there are: lists are often ordered
// by kind, or repeat a pattern of them.
std::vector<Node> part_of(const std::vector<Node>& nodes, size_t most);

}  // namespace tierpilot::sharing
