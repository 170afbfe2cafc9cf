// Which memory tiers this node has, how fast they are, and which two of them the dataset pool uses.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/config.h"
#include "daemon/memory/pool/types.h"
#include "daemon/probe/active/measure.h"
#include "daemon/topology/topology.h"

namespace tierpilot::agent {

struct Calibration {
  std::vector<TierMeasurement> tiers;  // fast to slow
  size_t fast = 0;                     // indices into tiers
  size_t slow = 0;
  std::optional<OperationRates> operations;
  double cpu_s = 0;    // CPU time that measuring took
  std::string choice;  // for people: which tiers were chosen, and why

  const TierMeasurement& fast_tier() const { return tiers[fast]; }
  const TierMeasurement& slow_tier() const { return tiers[slow]; }
  // From the fast tier to the slow one. A tier is measured against the next slower one, so this is
  // kUnavailable when the configuration chose another pair.
  Result<double> evict_gb_per_s() const;
};

// How the configuration wants tiers measured: within 5 s, with fewer rounds where they take longer.
ProbeOptions probe_options(const NodeConfig::Probe& probe);

// Measures (in child processes: call it before this process has threads) and chooses. The slow
// directory is made when it is missing.
Result<Calibration> calibrate(const NodeConfig& config, const Topology& topology);

// The choice alone; `tiers` are ranked fast to slow. With several NUMA nodes the fastest is the
// fast tier and the next the slow one; with one the slow tier is the directory. The configuration
// may say otherwise. kInvalid when it names a node that is not there.
Result<Calibration> choose_tiers(const NodeConfig::Pool& pool, std::vector<TierMeasurement> tiers);

PoolOptions pool_options(const NodeConfig::Pool& pool, const Calibration& calibration);

// The tier's own time to serve so many bytes: latency + bytes / read bandwidth, as measured; 0 when
// either is unavailable.
uint64_t service_time_ns(const TierMeasurement& tier, uint64_t bytes);

}  // namespace tierpilot::agent
