// A cluster whose nodes and GPUs fail often, and work of every kind for it.
#pragma once

#include "policies/sim/generator.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {

inline Workload mixed(uint32_t tasks, const ClusterSpec& cluster, double gang_share = 0) {
  GeneratorOptions options;
  options.tasks = tasks;
  options.datasets = 30;
  options.min_dataset_bytes = kMB;
  options.max_dataset_bytes = 30 * kMB;
  options.write_share = 0.2;
  options.units = {1, 2};
  options.gpu_share = 0.3;
  options.gpu_milli = {250, 1000, 2000};
  options.min_operations = 1e8;
  options.max_operations = 4e9;
  options.gang_share = gang_share;
  options.gang_ranks = {1, 2, 3};
  options.users = 3;
  return generate(options, cluster, 3);
}

inline ClusterSpec failing_cluster() {
  auto cluster = plain_cluster(4, 2);
  cluster.groups[0].gpus = 2;
  cluster.groups[0].node_failures = {.mean_between_s = 60, .mean_repair_s = 10};
  cluster.groups[0].gpu_failures = {.mean_between_s = 40, .mean_repair_s = 5};
  cluster.failure_clusters = {.probability = 0.5, .mean_delay_s = 5};
  cluster.coordinator.max_attempts = 100;
  cluster.coordinator.lease_s = 2;
  return cluster;
}

}  // namespace tierpilot::sim
