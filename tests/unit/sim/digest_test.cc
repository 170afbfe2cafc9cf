// Runs stay what they were, to the nanosecond: whoever makes the simulator faster does not mean to
// change what it says. Whoever does mean to sets the expected figures anew.
#include <cmath>

#include "policies/sim/generator.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

// FNV-1a, of whole numbers: what is reckoned in doubles may differ in the last bits with the
// library's logarithms.
class Digest {
 public:
  void add(uint64_t value) {
    for (int byte = 0; byte < 8; ++byte, value >>= 8)
      hash_ = (hash_ ^ (value & 0xff)) * 0x100000001b3;
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

uint64_t digest_of(ClusterSpec cluster, const GeneratorOptions& options, Policy& policy,
                   ServiceOrder order = ServiceOrder::kArrival) {
  cluster.coordinator.service_order = order;
  const Workload workload = generate(options, cluster, 1);
  const auto [result, log] = run(cluster, workload, policy, 3);
  Digest digest;
  for (const uint64_t count :
       {result.events, result.succeeded, result.failed, result.rejected, result.unfinished,
        result.hit_bytes, result.promoted_bytes, result.fetched_bytes, result.evicted_bytes,
        result.evicted_written_bytes, result.node_failures, result.gpu_failures, result.restarts,
        result.decisions, result.rewards})
    digest.add(count);
  for (const Attempt& attempt : log.decisions)
    digest.add(uint64_t{attempt.task} << 8 | attempt.attempt);
  for (const uint32_t task : log.order) {
    digest.add(task);
    digest.add(static_cast<uint64_t>(std::llround(log.times[task].response_s * 1e9)));
  }
  for (const auto& service : log.services)
    digest.add(static_cast<uint64_t>(service.measure.service_ns));
  return digest.value();
}

GeneratorOptions mixed(uint32_t tasks) {
  GeneratorOptions options;
  options.tasks = tasks;
  options.datasets = 60;
  options.min_dataset_bytes = kMB;
  options.max_dataset_bytes = 30 * kMB;
  options.write_share = 0.2;
  options.units = {1, 2};
  options.min_operations = 1e8;
  options.max_operations = 1e10;
  options.users = 5;
  return options;
}

TEST(Digest, FailuresGpusAndCheckpoints) {
  auto cluster = plain_cluster(12, 2);
  cluster.groups.push_back(plain_nodes(6, 3));
  cluster.groups[1].gpus = 2;
  cluster.groups[0].node_failures =
      cluster.groups[1].node_failures = {.mean_between_s = 300, .mean_repair_s = 20};
  cluster.groups[1].gpu_failures = {.mean_between_s = 300, .mean_repair_s = 20};
  cluster.failure_clusters = {.probability = 0.3, .mean_delay_s = 5};
  cluster.checkpoints = {.interval_s = 1, .cost_s = 0.1, .restart_s = 0.2};
  cluster.coordinator = {.max_attempts = 50};
  auto options = mixed(4000);
  options.gpu_share = 0.2;
  options.gpu_milli = {100, 250, 500, 1000, 1500};
  EXPECT_EQ(digest_of(cluster, options, *make_least_loaded_policy(1)), 0xbf7f45e450c7a697u);
  EXPECT_EQ(digest_of(cluster, options, *make_locality_load_policy(1)), 0x12b69d644525c292u);
}

TEST(Digest, SharedCoresAndWrites) {
  auto cluster = plain_cluster(4, 2);
  cluster.groups[0].shared_cores = 3;
  cluster.groups.push_back(plain_nodes(3, 2));
  EXPECT_EQ(digest_of(cluster, mixed(3000), *make_round_robin_policy()), 0x35dbb703c18fcb93u);
}

TEST(Digest, ExclusiveTiersThatLoseData) {
  auto cluster = plain_cluster(30, 4);
  cluster.groups[0].exclusive_tiers = true;
  cluster.groups[0].slow_budget_bytes = 800 * kMB;
  cluster.groups[0].node_failures = {.mean_between_s = 600, .mean_repair_s = 20};
  auto options = mixed(8000);
  options.datasets = 300;
  options.min_operations = 1e8;
  options.max_operations = 1e9;
  EXPECT_EQ(digest_of(cluster, options, *make_random_policy(1)), 0xce8780e2f3ce6b78u);
}

TEST(Digest, LargeClusterWithALongQueue) {
  auto cluster = plain_cluster(100, 4);
  cluster.groups.push_back(plain_nodes(60, 2));
  cluster.coordinator.considered_nodes = 40;
  auto options = mixed(10'000);
  options.offered_load = 1.3;
  options.zipf_exponent = 1.1;
  EXPECT_EQ(digest_of(cluster, options, *make_locality_greedy_policy(1)), 0x12f97074c474e267u);
  EXPECT_EQ(digest_of(cluster, options, *make_locality_load_policy(1)), 0x1440bc83d0ca59dbu);
}

TEST(Digest, ClusterThatIsLookedAheadIn) {
  auto cluster = plain_cluster(250, 2);
  cluster.groups.push_back(plain_nodes(60, 4));
  cluster.groups[0].node_failures = {.mean_between_s = 2000, .mean_repair_s = 20};
  cluster.coordinator = {.max_attempts = 50};
  auto options = mixed(12'000);
  options.datasets = 1500;
  options.zipf_exponent = 1.1;
  EXPECT_EQ(digest_of(cluster, options, *make_least_loaded_policy(1)), 0x3725ca9885378321u);
  EXPECT_EQ(digest_of(cluster, options, *make_locality_load_policy(1)), 0xfd75b00164ab8af8u);
}

}  // namespace
}  // namespace tierpilot::sim
