// Submits a second with a durable acknowledgement, by one client that waits for each answer and by
// one with 64 on their way, beside bare write+fdatasync on the same file system in the same run.
// A real coordinator without nodes: the tasks stay queued. Rounds alternate between the three.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/clock.h"
#include "tests/bench/run_main.h"
#include "tests/bench/submit/durable_write.h"
#include "tests/system/cluster.h"

namespace tierpilot::bench {
namespace {

constexpr int kOnTheirWay = 64;

struct Sizes {
  int floor_writes, sequential, pipelined;
};

using Figures = std::map<std::string, std::vector<double>>;

double submits_per_s(test::Client& client, int count, int window) {
  const int64_t start_ns = system_clock().boot_ns();
  if (auto status = client.submit_many(test::shell_task("true"), count, window); !status)
    throw std::runtime_error(status.error().message);
  return count / (static_cast<double>(system_clock().boot_ns() - start_ns) / 1e9);
}

Figures measure(const std::filesystem::path& parent, int rounds, const Sizes& sizes) {
  const test::TempFolder folder(parent);
  test::Cluster cluster({.nodes = 0, .state_dir = folder.path() / "state"});
  Figures figures;
  for (int round = 0; round < rounds; ++round) {
    figures["floor_writes_per_s"].push_back(
        durable_writes_per_s(folder.path(), sizes.floor_writes));
    figures["sequential_submits_per_s"].push_back(
        submits_per_s(cluster.client(), sizes.sequential, 1));
    figures["pipelined_submits_per_s"].push_back(
        submits_per_s(cluster.client(), sizes.pipelined, kOnTheirWay));
  }
  return figures;
}

void print(const std::filesystem::path& parent, Figures& figures, bool as_json) {
  nlohmann::ordered_json json{
      {"schema", 1}, {"folder", parent.string()}, {"in_flight", kOnTheirWay}};
  if (!as_json) fmt::print("durable acknowledgements in {}\n", parent.string());
  for (auto& [name, values] : figures) {
    std::sort(values.begin(), values.end());
    const double median = values[values.size() / 2];
    json["rounds"] = values.size();
    json["figures"][name] = {{"median", median}, {"min", values.front()}, {"max", values.back()}};
    if (!as_json)
      fmt::print("{:26} {:>10.1f}   {:.1f} .. {:.1f}\n", name, median, values.front(),
                 values.back());
  }
  if (as_json) fmt::print("{}\n", json.dump(2));
}

int run(int argc, char** argv) {
  CLI::App app("Submit benchmark: medians over rounds, and their spread");
  bool quick = false, as_json = false;
  int rounds = 7;
  std::string folder = "/var/tmp";  // on a disk where /tmp is a tmpfs
  app.add_flag("--quick", quick, "one short round, to see that it works");
  app.add_flag("-j,--json", as_json, "JSON on stdout");
  app.add_option("--rounds", rounds, "alternating rounds")->check(CLI::Range(1, 1000));
  app.add_option("--folder", folder, "where the store is kept")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const Sizes sizes = quick ? Sizes{50, 20, 256} : Sizes{500, 300, 3'000};
  auto figures = measure(folder, quick ? 1 : rounds, sizes);
  print(folder, figures, as_json);
  return 0;
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  return tierpilot::bench::run_main(argc, argv, tierpilot::bench::run);
}
