// Tasks a second that a coordinator takes, decides, hands out and records, with their durable
// acknowledgements: a real coordinator, and simulated daemons on real connections in this process.
// Beside it, in the same run, the file system's own bare write+fdatasync, which bounds how fast an
// acknowledgement can come.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/descriptors.h"
#include "tests/bench/pipeline/pipeline.h"
#include "tests/bench/pipeline/thread_cpu.h"
#include "tests/bench/run_main.h"
#include "tests/bench/submit/durable_write.h"
#include "tests/system/cluster.h"

namespace tierpilot::bench {
namespace {

constexpr int kFloorWrites = 200;

struct Options {
  PipelineOptions pipeline;
  uint32_t tasks = 40'000;
  int rounds = 5;
  std::string policy = "least-loaded";
  std::string folder = "/var/tmp";
  bool as_json = false;
};

using Figures = std::map<std::string, std::vector<double>>;

void add_latency(Figures& figures, const std::string& name, const Histogram& latency_ns) {
  figures[name + "_ms_p50"].push_back(latency_ns.quantile(0.5) / 1e6);
  figures[name + "_ms_p99"].push_back(latency_ns.quantile(0.99) / 1e6);
}

Figures measure(const Options& options) {
  const test::TempFolder folder(options.folder);
  test::Cluster cluster(
      {.nodes = 0, .policy = options.policy, .state_dir = folder.path() / "state"});
  cluster.client().disconnect();  // a thread has one event loop
  Pipeline pipeline(*Address::parse(cluster.address()), options.pipeline);
  pipeline.run(options.tasks / 10);  // warm: pages of the store, statements, branch predictors
  Figures figures;
  for (int round = 0; round < options.rounds; ++round) {
    figures["floor_writes_per_s"].push_back(durable_writes_per_s(folder.path(), kFloorWrites));
    const auto before_s = thread_cpu_s(cluster.coordinator().pid());
    const auto measured = pipeline.run(options.tasks);
    figures["tasks_per_s"].push_back(measured.tasks_per_s);
    add_latency(figures, "submit", measured.submit_ns);
    add_latency(figures, "dispatch", measured.dispatch_ns);
    add_latency(figures, "finish", measured.finish_ns);
    figures["cpu_us_per_task nodes and client"].push_back(measured.own_cpu_us);
    for (const auto& [thread, spent_s] : thread_cpu_s(cluster.coordinator().pid())) {
      const auto found = before_s.find(thread);
      const double used_s = spent_s - (found == before_s.end() ? 0 : found->second);
      figures["cpu_us_per_task thread " + thread].push_back(used_s * 1e6 / options.tasks);
    }
  }
  return figures;
}

void print(const Options& options, Figures& figures) {
  nlohmann::ordered_json json{{"schema", 1},
                              {"nodes", options.pipeline.nodes},
                              {"policy", options.policy},
                              {"tasks_per_round", options.tasks},
                              {"tasks_per_submit", options.pipeline.tasks_per_submit},
                              {"rounds", options.rounds}};
  if (!options.as_json)
    fmt::print("{} nodes, policy {}, {} rounds of {} tasks, {} in a submit; medians and spread\n",
               options.pipeline.nodes, options.policy, options.rounds, options.tasks,
               options.pipeline.tasks_per_submit);
  for (auto& [name, values] : figures) {
    std::sort(values.begin(), values.end());
    const double median = values[values.size() / 2];
    json["figures"][name] = {{"median", median}, {"min", values.front()}, {"max", values.back()}};
    if (!options.as_json)
      fmt::print("{:36} {:>10.2f}   {:.2f} .. {:.2f}\n", name, median, values.front(),
                 values.back());
  }
  if (options.as_json) fmt::print("{}\n", json.dump(2));
}

int run(int argc, char** argv) {
  CLI::App app("Pipeline benchmark: submit, decision, dispatch and recorded end of many tasks");
  Options options;
  bool quick = false;
  auto& pipeline = options.pipeline;
  app.add_flag("--quick", quick, "one short round with few nodes, to see that it works");
  app.add_flag("-j,--json", options.as_json, "JSON on stdout");
  app.add_option("--nodes", pipeline.nodes, "simulated daemons")->capture_default_str();
  app.add_option("--tasks", options.tasks, "of a round")->capture_default_str();
  app.add_option("--per-submit", pipeline.tasks_per_submit, "tasks in a submit")
      ->capture_default_str();
  app.add_option("--submits", pipeline.submits_in_flight, "submits on their way at a time")
      ->capture_default_str();
  app.add_option("--in-flight", pipeline.tasks_in_flight, "tasks that have not ended at a time")
      ->capture_default_str();
  app.add_option("--run-ms", pipeline.run_ms, "run time of a task")->capture_default_str();
  app.add_option("--policy", options.policy, "who decides")->capture_default_str();
  app.add_option("--rounds", options.rounds, "rounds")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--folder", options.folder, "where the store is kept")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (quick) {
    pipeline.nodes = 50;
    pipeline.tasks_in_flight = 200;
    options.tasks = 1000;
    options.rounds = 1;
  }
  raise_descriptor_limit();  // the coordinator inherits it
  auto figures = measure(options);
  print(options, figures);
  return 0;
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  return tierpilot::bench::run_main(argc, argv, tierpilot::bench::run);
}
