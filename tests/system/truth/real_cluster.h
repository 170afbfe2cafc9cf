// Real daemons on this machine that a workload is run on, and what is measured of the machine.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "policies/sim/model/cluster_spec.h"
#include "tests/system/cluster.h"
#include "tests/system/truth/measured_costs.h"

namespace tierpilot::test {

struct ClusterSize {
  int nodes = 0;
  uint64_t fast_mib = 0, slow_mib = 0;  // of each node
};

// What a program of this build, named by a variable of the environment, prints as JSON; throws
// where it fails.
Json output_of(const char* variable, Argv arguments,
               const std::map<std::string, std::string>& env = {});

class RealCluster {
 public:
  explicit RealCluster(const ClusterSize& size);

  // Of the cluster while it has nothing to do; others may end what they do within half a minute.
  CpuTime idle() const;
  void use(const std::string& policy) { tierctl({"policy", "use", policy}); }
  // Arguments of tierload.
  RealRun run(const Argv& load);
  // Float operations for one int32 operation, the mean of the nodes'.
  double int32_to_float() const;
  // The tiers, by the probe, where the nodes have theirs, if possible without a standstill of the
  // disk; throws where it finds too little.
  sim::TierSpeeds measured_speeds() const;

 private:
  Json tierctl(const Argv& arguments) const;

  const int nodes_;
  Cluster cluster_;
  const std::map<std::string, std::string> env_;
  DiskWatch disk_;
  uint64_t last_id_ = 0;
};

}  // namespace tierpilot::test
