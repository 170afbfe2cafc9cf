// What no policy can allocate more of at full load.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

// Thousandths of units that requests on the idle nodes ask for together, at most, whichever of them
// are left out. Any prices of what nodes have bound it (weak duality of the linear program of
// relaxed_cluster.h), so that it holds wherever the search for the best prices ends: column
// generation ("Decomposition Principle for Linear Programs", Dantzig and Wolfe, Operations Research
// 8, 1960), steadied as in "Weighted Dantzig-Wolfe Decomposition for Linear Mixed-Integer
// Programming" (Wentges, International Transactions in Operational Research 4, 1997). Functions of
// shares are added as the program's solution breaks them.
uint64_t allocation_bound(const std::vector<Node>& nodes, const std::vector<Request>& requests);

}  // namespace tierpilot::sharing
