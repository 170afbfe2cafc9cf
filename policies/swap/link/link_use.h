// Gives a plan's recomputations the link's free time.
#pragma once

#include "policies/swap/link/link.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

// Over the link in place of recomputing, or the other way round. What only recomputing asks for
// again counts as used then, so that it is copied and not let go of.
void change_way(StorageId storage, Absence& absence, Timetable& timetable);

// Of what the plan recomputes, `share` of the bytes leaves over the link where it has time for both
// ways: first what takes the longest to recompute for its bytes.
Plan with_link(const Graph& graph, Timetable& timetable, const Link& link, Plan plan, double share);

}  // namespace tierpilot::swap
