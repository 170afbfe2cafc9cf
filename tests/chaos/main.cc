// chaos: a real cluster under random faults for as long as it is told, and what became of the
// tasks and data that it had acknowledged.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <thread>

#include "tests/chaos/faults.h"
#include "tests/chaos/load.h"
#include "tests/chaos/namespaces.h"
#include "tests/chaos/own_mounts.h"
#include "tests/chaos/relays.h"

namespace tierpilot::chaos {
namespace {

struct Asked {
  int seconds = 30;
  uint64_t seed = 1;
  int nodes = 3;
  bool unprivileged = false;
};

// Whatever of this machine can be used; the rest is told.
class Laboratory {
 public:
  explicit Laboratory(const Asked& asked) {
    auto why_not = asked.unprivileged ? "not wanted" : enter_own_mounts();
    if (!why_not) why_not = try_to([&] { disks = std::make_unique<SmallDisks>(asked.nodes); });
    if (why_not) fmt::print("no full work folders: {}\n", *why_not);
    if (!why_not) why_not = try_to([&] { ways = std::make_unique<Namespaces>(asked.nodes); });
    if (why_not) {
      fmt::print("no network namespaces and no bad certificates: {}\n", *why_not);
      ways = std::make_unique<Relays>();
    } else {
      tls = true;
    }
    if (const auto no = ways->why_not_slow()) fmt::print("no slow links: {}\n", *no);
    const auto no_clocks = WallClocks::unavailable();
    if (no_clocks) fmt::print("no steps of clocks: {}\n", *no_clocks);
    if (!no_clocks) clocks = std::make_unique<WallClocks>(asked.nodes);
    fmt::print("{} daemons and a coordinator: {}\n", asked.nodes, ways->name());
  }
  void arrange(test::ClusterOptions& options) const {
    if (disks) disks->arrange(options);
    ways->arrange(options);
    if (clocks) clocks->arrange(options);
  }

  std::unique_ptr<Ways> ways;
  std::unique_ptr<SmallDisks> disks;
  std::unique_ptr<WallClocks> clocks;
  bool tls = false;

 private:
  template <class Step>
  static std::optional<std::string> try_to(Step step) {
    try {
      step();
      return std::nullopt;
    } catch (const std::exception& e) {
      return e.what();
    }
  }
};

// Odd seeds keep each dataset on two nodes. Ended tasks are forgotten after an hour: a wall clock
// that was set must not make it sooner.
test::ClusterOptions options_for(const Asked& asked) {
  return {.nodes = asked.nodes,
          .lease_ms = 2'000,
          .max_attempts = 100,
          .coordinator_more = asked.seed % 2 == 1 ? "[data]\nreplicas = 2\ngrace_s = 2\n" : "",
          .keep_history_hours = 1};
}

void report(const Asked& asked, const Faults& faults, const Load& load) {
  int count = 0;
  for (const auto& [fault, times] : faults.counts()) {
    fmt::print("{:5} {}\n", times, fault);
    if (fault.find(':') == std::string::npos) count += times;
  }
  fmt::print(
      "seed {}: {} faults, {} acknowledged requests, {} of them write datasets and {} are gangs, "
      "{} runs, {} tasks ran to their end more than once\n",
      asked.seed, count, load.acknowledged(), load.written(), load.gangs(), load.runs(),
      load.repeated());
}

int torment(const Asked& asked) {
  if (const auto why = test::cluster_unavailable()) {
    fmt::print("skipped: {}\n", *why);
    return 77;
  }
  const Laboratory laboratory(asked);
  auto options = options_for(asked);
  laboratory.arrange(options);
  test::Cluster cluster(options);
  const test::Journal journal(cluster.folder());
  Load load(cluster.address(), journal);
  // With a thread of its own, so that faults and requests meet anywhere.
  std::atomic<bool> healed = false;
  std::promise<Status> prepared;
  auto submitting = std::async(std::launch::async, [&] {
    prepared.set_value(load.prepare());
    while (!healed) {
      load.submit_some();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return load.settle();
  });
  const auto has_datasets = prepared.get_future().get();
  Faults faults({cluster, *laboratory.ways, laboratory.disks.get(), laboratory.clocks.get(),
                 asked.nodes, laboratory.tls},
                asked.seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(asked.seconds);
  while (std::chrono::steady_clock::now() < end) faults.strike();
  faults.heal();
  healed = true;
  auto wrong = submitting.get();
  wrong.insert(wrong.end(), faults.wrong().begin(), faults.wrong().end());
  if (!has_datasets) wrong.push_back("no datasets: " + has_datasets.error().message);
  report(asked, faults, load);
  for (const auto& line : wrong) fmt::print("WRONG: {}\n", line);
  if (!wrong.empty()) fmt::print("{}\n", cluster.logs());
  return wrong.empty() ? 0 : 1;
}

int main_checked(int argc, char** argv) {
  CLI::App app{"Torments a real cluster on this machine, and checks what it had promised."};
  Asked asked;
  app.add_option("--seconds", asked.seconds, "For how long")->capture_default_str();
  app.add_option("--seed", asked.seed, "Which faults, in which order")->capture_default_str();
  app.add_option("--nodes", asked.nodes, "Daemons")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_flag("--unprivileged", asked.unprivileged, "As for a user who is not root");
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
