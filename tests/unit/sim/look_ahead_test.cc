// Looking ahead only brings memory into the caches: a run with it is the run without it.
#include "policies/sim/generator.h"
#include "tests/unit/sim/small_world.h"

namespace tierpilot::sim {
namespace {

// Several kinds of nodes, all of which fail now and then, and far more than looking ahead needs.
ClusterSpec restless_cluster() {
  auto cluster = plain_cluster(200, 2);
  cluster.groups.push_back(plain_nodes(80, 3));
  cluster.groups.push_back(plain_nodes(40, 2));
  cluster.groups[1].gpus = 2;
  cluster.groups[1].gpu_failures = {.mean_between_s = 400, .mean_repair_s = 10};
  cluster.groups[2].exclusive_tiers = true;
  for (NodeGroup& group : cluster.groups) {
    group.node_failures = {.mean_between_s = 2000, .mean_repair_s = 10};
    group.link_latency_s = 1e-4;
  }
  cluster.coordinator = {.max_attempts = 50};
  return cluster;
}

GeneratorOptions varied_tasks() {
  GeneratorOptions options;
  options.tasks = 8000;
  options.offered_load = 1.1;
  options.datasets = 900;
  options.min_dataset_bytes = kMB;
  options.max_dataset_bytes = 30 * kMB;
  options.zipf_exponent = 1.1;
  options.write_share = 0.1;
  options.units = {1, 2};
  options.gpu_share = 0.1;
  options.gpu_milli = {250, 1000};
  options.min_operations = 1e9;
  options.max_operations = 1e10;
  options.users = 5;
  return options;
}

// The least loaded node; keeps a task back where a full one has more of its data.
class PatientPolicy final : public Policy {
 public:
  bool holds() const override { return true; }
  Decision decide(const View& view) override {
    Decision decision;
    uint64_t most_held = 0;
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      const NodeState& node = view.nodes[i];
      if (node.full && node.held_fast_bytes > most_held) decision.held_for = i;
      most_held = std::max(most_held, node.held_fast_bytes);
      if (node.candidate &&
          (decision.node == kNoNode || node.assigned < view.nodes[decision.node].assigned))
        decision.node = i;
    }
    if (!view.may_hold || decision.node == kNoNode)
      decision.held_for = kNoNode;
    else if (decision.held_for != kNoNode)
      decision.node = kNoNode;
    return decision;
  }
};

Outcome run_so(bool look_ahead, const ClusterSpec& cluster, Policy& policy) {
  Outcome outcome;
  const Workload workload = generate(varied_tasks(), cluster, 1);
  RunOptions options{.seed = 3, .listener = &outcome.log, .look_ahead = look_ahead};
  auto result = simulate(cluster, workload, policy, options);
  if (result)
    outcome.result = std::move(*result);
  else
    ADD_FAILURE() << result.error().message;
  return outcome;
}

void expect_same(const Outcome& a, const Outcome& b) {
  EXPECT_GT(a.result.succeeded, 7000u);
  EXPECT_EQ(a.result.events, b.result.events);
  EXPECT_EQ(a.result.decisions, b.result.decisions);
  EXPECT_EQ(a.result.holds, b.result.holds);
  EXPECT_EQ(a.result.evicted_bytes, b.result.evicted_bytes);
  EXPECT_EQ(a.result.reward_mean, b.result.reward_mean) << "to the bit";
  EXPECT_EQ(a.result.responses_s, b.result.responses_s);
  EXPECT_EQ(a.log.decisions, b.log.decisions);
  EXPECT_EQ(a.log.order, b.log.order);
  ASSERT_EQ(a.log.services.size(), b.log.services.size());
  for (size_t i = 0; i < a.log.services.size(); ++i)
    ASSERT_EQ(a.log.services[i].measure.service_ns, b.log.services[i].measure.service_ns) << i;
}

TEST(LookAhead, ChangesNoResult) {
  const ClusterSpec cluster = restless_cluster();
  const auto with = run_so(true, cluster, *make_locality_load_policy(1));
  const auto without = run_so(false, cluster, *make_locality_load_policy(1));
  expect_same(with, without);
  EXPECT_GT(with.result.node_failures, 20u);
  EXPECT_GT(with.result.gpu_failures, 20u);
}

TEST(LookAhead, ChangesNoResultWhereTasksAreKeptBack) {
  const ClusterSpec cluster = restless_cluster();
  PatientPolicy first, second;
  const auto with = run_so(true, cluster, first);
  expect_same(with, run_so(false, cluster, second));
  EXPECT_GT(with.result.holds, 20u);
}

TEST(LookAhead, ChangesNoResultWhereCoresAreShared) {
  ClusterSpec cluster = plain_cluster(30, 2);
  cluster.groups[0].shared_cores = 40;
  cluster.groups[0].handling_core_s = 1e-3;
  const auto with = run_so(true, cluster, *make_least_loaded_policy(1));
  expect_same(with, run_so(false, cluster, *make_least_loaded_policy(1)));
}

}  // namespace
}  // namespace tierpilot::sim
