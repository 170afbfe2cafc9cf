// How fast the simulator is: events a second on one core, and memory for each task.
#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "policies/placement/heuristics.h"
#include "policies/sim/generator.h"
#include "policies/sim/simulator.h"

namespace tierpilot::sim {
namespace {

double cpu_s() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

double resident_peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

ClusterSpec cluster_of(uint32_t nodes) {
  NodeGroup group;
  group.count = nodes;
  group.units = 4;
  return {.name = "alike", .groups = {group}};
}

// Most data is read, a little written; datasets grow with the cluster.
GeneratorOptions load_of(uint32_t nodes, uint32_t tasks) {
  GeneratorOptions options;
  options.tasks = tasks;
  options.datasets = 20 * nodes;
  options.zipf_exponent = 0.8;
  options.write_share = 0.01;
  options.min_operations = 5e8;
  options.max_operations = 5e9;
  options.users = 16;
  return options;
}

struct Case {
  const char* policy;
  uint32_t nodes;
  uint32_t tasks;
};

nlohmann::ordered_json measure(const Case& what) {
  const ClusterSpec cluster = cluster_of(what.nodes);
  const Workload workload = generate(load_of(what.nodes, what.tasks), cluster, 1);
  const auto policy = what.policy == std::string("locality-load") ? make_locality_load_policy(1)
                      : what.policy == std::string("random")      ? make_random_policy(1)
                                                                  : make_least_loaded_policy(1);
  policy->explain(false);
  const double begin_s = cpu_s();
  const auto result = simulate(cluster, workload, *policy, {});
  const double took_s = cpu_s() - begin_s;
  if (!result) {
    fmt::print(stderr, "error: {}\n", result.error().message);
    std::exit(1);
  }
  return {{"policy", what.policy},
          {"nodes", what.nodes},
          {"tasks", what.tasks},
          {"events", result->events},
          {"cpu_s", took_s},
          {"events_per_s", static_cast<double>(result->events) / took_s},
          {"utilisation", result->utilisation},
          {"resident_peak_bytes_per_task", resident_peak_bytes() / what.tasks}};
}

}  // namespace
}  // namespace tierpilot::sim

int main(int argc, char** argv) {
  using tierpilot::sim::Case;
  bool quick = false, json = false;
  CLI::App app("Speed of the simulator");
  app.add_flag("--quick", quick, "A tenth of the tasks");
  app.add_flag("--json", json, "Print JSON");
  uint32_t nodes = 0;
  app.add_option("--nodes", nodes, "Only clusters of so many nodes");
  CLI11_PARSE(app, argc, argv);
  auto rows = nlohmann::ordered_json::array();
  if (!json)
    fmt::print("{:14} {:>7} {:>9} {:>10} {:>8} {:>10} {:>12} {:>12}\n", "policy", "nodes", "tasks",
               "events", "CPU s", "events/s", "utilisation", "bytes/task");
  for (const Case& what :
       {Case{"random", 64, 500'000}, Case{"least-loaded", 64, 500'000},
        Case{"locality-load", 64, 500'000}, Case{"random", 1'000, 500'000},
        Case{"locality-load", 1'000, 500'000}, Case{"locality-load", 10'000, 1'000'000}}) {
    if (nodes != 0 && what.nodes != nodes) continue;
    const auto row =
        tierpilot::sim::measure({what.policy, what.nodes, quick ? what.tasks / 10 : what.tasks});
    rows.push_back(row);
    if (!json)
      fmt::print("{:14} {:7} {:9} {:10} {:8.2f} {:10.0f} {:12.3f} {:12.0f}\n", what.policy,
                 what.nodes, row["tasks"].get<int>(), row["events"].get<uint64_t>(),
                 row["cpu_s"].get<double>(), row["events_per_s"].get<double>(),
                 row["utilisation"].get<double>(),
                 row["resident_peak_bytes_per_task"].get<double>());
    std::fflush(stdout);
  }
  if (json) fmt::print("{}\n", nlohmann::ordered_json{{"schema", 1}, {"runs", rows}}.dump(2));
}
