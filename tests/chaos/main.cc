// chaos: a real cluster under random faults for as long as it is told, and what became of the
// tasks that it had acknowledged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <thread>

#include "tests/chaos/faults.h"
#include "tests/chaos/load.h"

namespace tierpilot::chaos {
namespace {

struct Asked {
  FaultOptions faults;
  int seconds = 30;
};

std::filesystem::path relay_socket(const std::filesystem::path& folder, int node) {
  return folder / fmt::format("r{}.sock", node + 1);
}

int torment(const Asked& asked) {
  if (const auto why = test::cluster_unavailable()) {
    fmt::print("skipped: {}\n", *why);
    return 77;
  }
  const test::TempFolder sockets("/tmp");
  std::vector<std::unique_ptr<Relay>> relays;
  test::ClusterOptions options{
      .nodes = asked.faults.nodes, .lease_ms = 2'000, .max_attempts = 100, .small_network = true};
  options.way_to_coordinator = [&](int node, const std::filesystem::path& coordinator) {
    relays.push_back(std::make_unique<Relay>(relay_socket(sockets.path(), node), coordinator));
    return "unix:" + relay_socket(sockets.path(), node).string();
  };
  test::Cluster cluster(options);
  const test::Journal journal(cluster.folder());
  Load load(cluster.address(), journal);
  // With a thread of its own, so that faults and requests meet anywhere.
  std::atomic<bool> healed = false;
  auto submitting = std::async(std::launch::async, [&] {
    while (!healed) {
      load.submit_some();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return load.settle();
  });
  Faults faults(cluster, relays, asked.faults);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(asked.seconds);
  while (std::chrono::steady_clock::now() < end) faults.strike();
  faults.heal();
  healed = true;
  const auto wrong = submitting.get();
  int count = 0;
  for (const auto& [fault, times] : faults.counts()) {
    fmt::print("{:5} {}\n", times, fault);
    if (!fault.starts_with("partition:")) count += times;
  }
  fmt::print(
      "seed {}: {} faults, {} acknowledged requests, {} runs, {} tasks ran to their end more "
      "than once\n",
      asked.faults.seed, count, load.acknowledged(), load.runs(), load.repeated());
  for (const auto& line : wrong) fmt::print("WRONG: {}\n", line);
  if (!wrong.empty()) fmt::print("{}\n", cluster.logs());
  return wrong.empty() ? 0 : 1;
}

int main_checked(int argc, char** argv) {
  CLI::App app{"Torments a real cluster on this machine, and checks what it had promised."};
  Asked asked;
  app.add_option("--seconds", asked.seconds, "For how long")->capture_default_str();
  app.add_option("--seed", asked.faults.seed, "Which faults, in which order")
      ->capture_default_str();
  app.add_option("--nodes", asked.faults.nodes, "Daemons")->capture_default_str();
  app.add_flag("--stops", asked.faults.stops, "Daemons are also ended by SIGTERM");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  try {
    return torment(asked);
  } catch (const std::exception& e) {
    fmt::print(stderr, "{}\n", e.what());
    return 1;
  }
}

}  // namespace
}  // namespace tierpilot::chaos

int main(int argc, char** argv) {
  return tierpilot::chaos::main_checked(argc, argv);
}
