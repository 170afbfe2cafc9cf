// Placements that are worth a look, of the very many that there are.
#pragma once

#include <functional>
#include <vector>

#include "policies/gang/placement/placer.h"

namespace tierpilot::gang {

using Units = std::vector<uint32_t>;

Units free_units(const PlacementState& state);
// Free units of each node that has some.
std::vector<Units> free_by_node(const PlacementState& state);

// The one node with the fewest free units that suffice; without one, the emptiest nodes first.
Units best_fit(const PlacementState& state, uint32_t count);

// The soundest units; best fit; the soundest nodes for each count of units taken from a node; and
// the same of the nodes that are nearest to what is to be fetched.
std::vector<Units> sound_candidates(const PlacementState& state, uint32_t count,
                                    const std::function<double(uint32_t)>& risk);

// The least hours in which nodes of so many free units have what a job needs; 0: nothing to fetch.
double least_fetch_hours(const PlacementState& state, uint32_t count);

// Those, and what leaves sound units to others: the same from the other end, and nodes that are
// used up by it before nodes of which something is left.
std::vector<Units> many_candidates(const PlacementState& state, uint32_t count);

}  // namespace tierpilot::gang
