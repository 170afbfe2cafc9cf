#include "policies/sim/evaluation/suite.h"

#include <fmt/format.h>

#include <cmath>

namespace tierpilot::sim {
namespace {

NodeGroup common_node(uint32_t count) {
  NodeGroup group;
  group.count = count;
  group.units = 2;
  group.fast_budget_bytes = 1ULL << 30;
  group.tiers.promote_bytes_per_s = 0.8e9;
  group.tiers.evict_bytes_per_s = 0.5e9;
  group.link_bytes_per_s = 0.8e9;
  return group;
}

// Half of the nodes are common ones, a quarter each much stronger and much weaker.
std::vector<NodeGroup> unlike_nodes(uint32_t count) {
  NodeGroup common = common_node(count / 2);
  NodeGroup strong = common_node(count / 4);
  strong.name = "strong";
  strong.units = 4;
  strong.operations_per_s = 2.5e9;
  strong.fast_budget_bytes = 2ULL << 30;
  strong.tiers.promote_bytes_per_s = 2e9;
  strong.tiers.evict_bytes_per_s = 1.5e9;
  strong.link_bytes_per_s = 1.2e9;
  NodeGroup weak = common_node(count - common.count - strong.count);
  weak.name = "weak";
  weak.operations_per_s = 0.4e9;
  weak.fast_budget_bytes = 512ULL << 20;
  weak.tiers.promote_bytes_per_s = 0.25e9;
  weak.tiers.evict_bytes_per_s = 0.15e9;
  weak.link_bytes_per_s = 0.3e9;
  return {common, strong, weak};
}

GeneratorOptions common_workload(uint32_t nodes, uint32_t tasks) {
  GeneratorOptions options;
  options.tasks = tasks;
  options.offered_load = 0.6;
  options.datasets = 24 * nodes;  // about 1.3 times what all fast tiers hold
  options.min_dataset_bytes = 16ULL << 20;
  options.max_dataset_bytes = 128ULL << 20;
  options.zipf_exponent = flattened(0.9, nodes);
  options.write_share = 0.05;
  options.min_operations = 1e8;
  options.max_operations = 2e9;
  options.users = 8;
  return options;
}

// `data`: so many times the common data, in as many times the fast memory.
void add_cells(Suite& suite, uint32_t nodes, uint32_t tasks, uint32_t data) {
  const auto add = [&](const char* name, auto change) {
    EvaluationCell cell;
    cell.cluster.name = fmt::format("{} nodes", nodes);
    cell.cluster.groups = {common_node(nodes)};
    cell.workload = common_workload(nodes, tasks);
    cell.workload.name = data == 1 ? name : fmt::format("{} x{}", name, data);
    change(cell);
    cell.workload.min_dataset_bytes *= data;
    cell.workload.max_dataset_bytes *= data;
    for (NodeGroup& group : cell.cluster.groups) group.fast_budget_bytes *= data;
    suite.cells.push_back(std::move(cell));
  };
  add("read-mostly", [&](EvaluationCell& cell) {
    cell.workload.zipf_exponent = flattened(1.4, nodes);
    cell.workload.write_share = 0.005;
  });
  add("write-heavy", [&](EvaluationCell& cell) {
    cell.workload.zipf_exponent = flattened(0.6, nodes);
    cell.workload.write_share = 0.4;
  });
  add("scan", [](EvaluationCell& cell) { cell.workload.scan_share = 0.7; });
  add("phase-change", [&](EvaluationCell& cell) {
    cell.workload.zipf_exponent = flattened(1.1, nodes);
    cell.workload.phase_tasks = tasks / 5;
  });
  add("unlike-nodes", [&](EvaluationCell& cell) { cell.cluster.groups = unlike_nodes(nodes); });
  add("near-saturation", [](EvaluationCell& cell) { cell.workload.offered_load = 0.92; });
  // More than the cluster can do in a fifth of the time, and little in between.
  add("bursts", [](EvaluationCell& cell) {
    cell.workload.burst_factor = 2.5;
    cell.workload.burst_share = 0.2;
    cell.workload.burst_mean_s = 3;
  });
}

// Bringing a task's data from another node takes a tenth of its run on average, and four tenths
// where there is four times as much of it.
void add_both(Suite& suite, uint32_t nodes, uint32_t tasks) {
  add_cells(suite, nodes, tasks, 1);
  add_cells(suite, nodes, tasks, 4);
}

}  // namespace

double flattened(double exponent, uint32_t nodes) {
  return exponent * std::pow(8.0 / nodes, 1.0 / 6);
}

Result<Suite> make_suite(std::string_view name) {
  Suite suite{.name = std::string(name)};
  if (name == "quick") {
    suite.seeds = 2;
    add_both(suite, 8, 300);
  } else if (name == "short") {
    suite.seeds = 3;
    add_both(suite, 8, 3000);
    add_both(suite, 32, 5000);
  } else if (name == "full") {
    suite.seeds = 10;
    add_both(suite, 8, 4000);
    add_both(suite, 128, 10'000);
    add_both(suite, 1024, 20'000);
  } else if (name == "wide") {
    suite.seeds = 3;
    add_cells(suite, 1024, 20'000, 1);
    for (EvaluationCell& cell : suite.cells) cell.cluster.coordinator.considered_nodes = 1024;
  } else {
    return fail(ErrorCode::kNotFound,
                fmt::format("suite '{}' does not exist: there are quick, short, full, wide", name));
  }
  return suite;
}

}  // namespace tierpilot::sim
