// The tiers that pages are placed on, made of this machine's topology.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/sysroot.h"
#include "daemon/memory/paging/plan.h"
#include "daemon/topology/topology.h"

namespace tierpilot {

struct TierSet {
  std::vector<PagingTier> tiers;  // fast to slow
  std::string latency_source;     // "measured", "HMAT", "SLIT distances": how far to trust gains
};

// Nodes with memory, those within 15 % of each other's latency together. Latencies are those of
// `measured_ns` (by node, seen from any one of them) where it has all of them; nodes with CPUs are
// then as fast as the fastest of these, as each is near to its own CPUs. Else HMAT's where the
// firmware tells all, else 10 ns for each chunk of SLIT distance from the nearest node with CPUs,
// which only ranks.
TierSet make_paging_tiers(const Topology& topology, const std::map<int, double>& measured_ns = {});

// Reads what is free now: free memory, and page cache that nobody used lately. A node that cannot
// be read has none.
void refresh_free_bytes(const Sysroot& sysroot, std::vector<PagingTier>& tiers);

}  // namespace tierpilot
