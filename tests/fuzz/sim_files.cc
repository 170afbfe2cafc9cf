// Clusters and workloads that users describe.
#include "policies/sim/generator.h"
#include "policies/sim/model/cluster_spec.h"
#include "tests/fuzz/harness.h"

using namespace tierpilot;

FUZZ(cluster_spec) {
  if (const auto spec = sim::parse_cluster_spec(bytes, "cluster.toml", "/nowhere"))
    fuzz::promise(spec->node_count() > 0 && spec->unit_count() > 0, "a cluster has units");
}

FUZZ(workload_spec) {
  (void)sim::parse_generator_options(bytes, "workload.toml");
}

FUZZ(tier_speeds) {
  if (const auto speeds = sim::read_tier_speeds(fuzz::file_of(bytes)))
    fuzz::promise(speeds->fast_read_bytes_per_s > 0 && speeds->fast_read_bytes_per_s < 1e300,
                  "speeds are numbers");
}
