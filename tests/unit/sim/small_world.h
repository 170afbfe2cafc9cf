// Short ways to describe clusters and workloads whose times can be reckoned by hand: no overheads,
// and speeds of 1 GB/s and 1e9 operations/s.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "policies/placement/heuristics.h"
#include "policies/placement/registry.h"
#include "policies/sim/player.h"

namespace tierpilot::sim {

constexpr uint64_t kMB = 1'000'000;
constexpr int64_t kMs = 1'000'000;

inline NodeGroup plain_nodes(uint32_t count, uint32_t units = 1) {
  NodeGroup group;
  group.count = count;
  group.units = units;
  group.operations_per_s = 1e9;
  group.fast_budget_bytes = 100 * kMB;
  group.slow_budget_bytes = 10'000 * kMB;
  group.tiers = {.fast_latency_ns = 100,
                 .fast_read_bytes_per_s = 10e9,
                 .fast_copy_bytes_per_s = 5e9,
                 .promote_bytes_per_s = 1e9,
                 .evict_bytes_per_s = 1e9};
  group.link_bytes_per_s = 1e9;
  group.link_latency_s = 0;
  group.launch_s = 0;
  return group;
}

inline ClusterSpec plain_cluster(uint32_t nodes, uint32_t units = 1) {
  ClusterSpec cluster{.name = "plain", .groups = {plain_nodes(nodes, units)}};
  cluster.coordinator.accept_s = cluster.coordinator.dispatch_s = cluster.coordinator.report_s = 0;
  return cluster;
}

class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(std::initializer_list<uint64_t> dataset_bytes = {}) {
    for (const uint64_t bytes : dataset_bytes) workload_.datasets.push_back({bytes});
    workload_.users = {"a", "b"};
    workload_.gpu_types = {"small", "large"};
  }
  // Runs `run_ms` on a plain node. The task may be changed further.
  Task& add(int64_t arrival_ms, int64_t run_ms, std::initializer_list<DatasetUse> uses = {}) {
    Task task;
    task.arrival_ns = arrival_ms * kMs;
    task.operations = static_cast<double>(run_ms) * 1e6;
    task.first_use = static_cast<uint32_t>(workload_.uses.size());
    task.use_count = static_cast<uint32_t>(uses.size());
    workload_.uses.insert(workload_.uses.end(), uses.begin(), uses.end());
    workload_.tasks.push_back(task);
    return workload_.tasks.back();
  }
  const Workload& workload() const { return workload_; }

 private:
  Workload workload_;
};

// Sends each task to the node that a list names by slot, round and round; else to the first
// candidate.
class ScriptedPolicy final : public Policy {
 public:
  explicit ScriptedPolicy(std::vector<uint32_t> slots) : slots_(std::move(slots)) {}
  Decision decide(const View& view) override {
    views.push_back(view);
    const uint32_t wanted = slots_[next_++ % slots_.size()];
    Decision decision;
    for (size_t i = view.nodes.size(); i-- > 0;)
      if (view.nodes[i].candidate && (decision.node == kNoNode || view.nodes[i].slot >= wanted))
        decision.node = i;
    return decision;
  }
  std::vector<View> views;

 private:
  std::vector<uint32_t> slots_;
  size_t next_ = 0;
};

struct Log final : Listener {
  struct Served {
    Attempt attempt;
    ServiceMeasure measure;
    RewardParts reward;
  };
  void decided(Attempt attempt, const View&, const Decision&) override {
    decisions.push_back(attempt);
  }
  void served(Attempt attempt, const ServiceMeasure& measure, const RewardParts& reward) override {
    services.push_back({attempt, measure, reward});
  }
  void abandoned(Attempt attempt) override { abandons.push_back(attempt); }
  void finished(Attempt attempt, const TaskTimes& task_times) override {
    const uint32_t task = attempt.task;
    if (times.size() <= task) times.resize(task + 1);
    times[task] = task_times;
    order.push_back(task);
  }
  std::vector<Attempt> decisions, abandons;
  std::vector<Served> services;
  std::vector<TaskTimes> times;  // by task
  std::vector<uint32_t> order;   // of ending
};

inline Result<Player> heuristic_player(const std::string& name, uint64_t seed) {
  auto policy = make_policy(name, seed);
  if (!policy) return tl::unexpected(policy.error());
  return Player{std::move(*policy), nullptr};
}

struct Outcome {
  RunResult result;
  Log log;
};

inline Outcome run(const ClusterSpec& cluster, const Workload& workload, Policy& policy,
                   uint64_t seed = 1) {
  Outcome outcome;
  auto result = simulate(cluster, workload, policy, {.seed = seed, .listener = &outcome.log});
  if (result)
    outcome.result = std::move(*result);
  else
    ADD_FAILURE() << result.error().message;
  return outcome;
}

inline Outcome run(const ClusterSpec& cluster, const Workload& workload,
                   std::vector<uint32_t> slots = {0}) {
  ScriptedPolicy policy(std::move(slots));
  return run(cluster, workload, policy);
}

}  // namespace tierpilot::sim
