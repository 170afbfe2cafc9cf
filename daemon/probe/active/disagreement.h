// Where the kernel's ranking of memory, or the firmware's promises, are not what was measured.
#pragma once

#include <string>
#include <vector>

#include "daemon/probe/active/measure.h"
#include "daemon/topology/topology.h"

namespace tierpilot {

// One sentence each; empty where all agree. Only nodes whose latency is no noisy figure are judged,
// and the sentences say so of the others when there was something to compare.
//
// The kernel's memory tiers: nodes it holds for equals but that measure as different classes, an
// order that is the other way round, and nodes it ranks apart but that measure alike. HMAT: a
// latency over 25 % off, when the measuring CPUs belong to the initiators it speaks of, and
// an order of two nodes that is the other way round. Its bandwidths are the whole node's,
// which few threads do not reach, so only more than 25 % over the promise is told.
std::vector<std::string> disagreements(const Topology& topology,
                                       const std::vector<TierMeasurement>& tiers);

}  // namespace tierpilot
