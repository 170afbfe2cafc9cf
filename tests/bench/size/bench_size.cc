// What a coordinator's size costs: so many nodes on real connections, each with a replica of so
// many datasets. Beside it, in the same run, a cluster of 100 nodes.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "base/clock.h"
#include "base/descriptors.h"
#include "coordinator/connection_limit.h"
#include "tests/bench/run_main.h"
#include "tests/bench/size/crowd.h"
#include "tests/system/cluster.h"

namespace tierpilot::bench {
namespace {

struct Size {
  uint32_t nodes = 0, datasets = 0, tasks = 0;
};

double seconds_of(const std::function<void()>& work) {
  const int64_t began_ns = system_clock().boot_ns();
  work();
  return static_cast<double>(system_clock().boot_ns() - began_ns) / 1e9;
}

double resident_mib(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("VmRSS:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

void want(const char* what, uint64_t got, uint64_t wanted) {
  if (got != wanted)
    throw std::runtime_error(fmt::format("{}: {} were listed, of {}", what, got, wanted));
}

void measure(const Size& size, const std::string& folder) {
  const test::TempFolder kept(folder);
  test::Cluster cluster({.nodes = 0, .lease_ms = 60'000, .state_dir = kept.path() / "state"});
  cluster.client().disconnect();  // a thread has one event loop
  const auto show = [&](const char* what, double seconds, const std::string& more) {
    fmt::print("  {:28} {:>9.3f} s   {:>8.1f} MiB resident   {}\n", what, seconds,
               resident_mib(cluster.coordinator().pid()), more);
    std::fflush(stdout);
  };
  fmt::print("{} nodes, {} datasets on each: {} replicas\n", size.nodes, size.datasets,
             uint64_t{size.nodes} * size.datasets);
  Crowd crowd(*Address::parse(cluster.address()), size.nodes);
  show("all join", seconds_of([&] { crowd.join(); }), "");
  show("datasets are added", seconds_of([&] { crowd.add_datasets(size.datasets, 1 << 20); }), "");
  show("all say what they have", seconds_of([&] { crowd.hold_all(); }), "");
  Listed nodes, datasets;
  double took_s = seconds_of([&] { nodes = crowd.list_nodes(); });
  show("nodes are listed", took_s, fmt::format("{} pages", nodes.pages));
  took_s = seconds_of([&] { datasets = crowd.list_datasets(); });
  show("datasets are listed", took_s, fmt::format("{} pages", datasets.pages));
  want("nodes", nodes.entries, size.nodes);
  want("datasets", datasets.entries, size.datasets);
  want("replicas", datasets.replicas, uint64_t{size.nodes} * size.datasets);
  std::vector<int64_t> tasks_ns;
  took_s = seconds_of([&] { tasks_ns = crowd.run_tasks(size.tasks); });
  std::sort(tasks_ns.begin(), tasks_ns.end());
  const auto ms = [&](size_t percent) {
    return static_cast<double>(tasks_ns[(tasks_ns.size() - 1) * percent / 100]) / 1e6;
  };
  show("tasks, one after another", took_s,
       fmt::format("of {}: median {:.1f} ms, p99 {:.1f} ms", size.tasks, ms(50), ms(99)));
}

void allow_descriptors(uint32_t nodes) {
  const uint64_t needed = nodes + kOwnDescriptors + 1, allowed = raise_descriptor_limit();
  if (allowed < needed)
    throw std::runtime_error(
        fmt::format("{} descriptors are needed, and `ulimit -Hn` is {}", needed, allowed));
}

int run(int argc, char** argv) {
  CLI::App app("What many nodes and replicas cost a coordinator");
  Size size{16'384, 62, 300};
  bool quick = false;
  std::string folder = "/var/tmp";
  app.add_flag("--quick", quick, "few nodes, to see that it works");
  app.add_option("--nodes", size.nodes, "nodes")->check(CLI::Range(1, 100'000));
  app.add_option("--datasets", size.datasets, "datasets on each")->check(CLI::Range(0, 100'000));
  app.add_option("--tasks", size.tasks, "tasks, one after another")->check(CLI::Range(1, 100'000));
  app.add_option("--folder", folder, "where the store is kept")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (quick) size = {600, 20, 20};
  allow_descriptors(size.nodes);
  if (!quick) measure({100, size.datasets, size.tasks}, folder);
  measure(size, folder);
  return 0;
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  return tierpilot::bench::run_main(argc, argv, tierpilot::bench::run);
}
