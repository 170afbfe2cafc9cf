// How long a gang of 64 ranks takes from its submit until all have been given to eight simulated
// nodes, its decision and two durable writes included; beside it as many single tasks.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/clock.h"
#include "tests/bench/pipeline/simulated_node.h"
#include "tests/bench/run_main.h"
#include "tests/system/cluster.h"
#include "tools/cluster/connection.h"

namespace tierpilot::bench {
namespace {

constexpr uint32_t kNodes = 8, kUnits = 8, kRanks = kNodes * kUnits;
constexpr double kGoalMs = 200;

class Start {
 public:
  explicit Start(const Address& coordinator) {
    client_ = RpcConnection::connect(loop_, coordinator, nullptr).wait(loop_.wait_scope());
    const NodeHooks hooks{[this](uint64_t) { count(started_, all_started_); },
                          [this](uint64_t) { count(recorded_, all_recorded_); }};
    for (uint32_t i = 0; i < kNodes; ++i)
      nodes_.push_back(
          std::make_unique<SimulatedNode>(loop_, runs_, fmt::format("n{}", i), kUnits, hooks));
    join_all(loop_, coordinator, nodes_);
  }

  // Milliseconds until all are started; returns when they have ended.
  double run(uint32_t tasks, uint32_t ranks) {
    started_ = recorded_ = 0;
    auto started = kj::newPromiseAndFulfiller<void>();
    auto recorded = kj::newPromiseAndFulfiller<void>();
    all_started_ = kj::mv(started.fulfiller);
    all_recorded_ = kj::mv(recorded.fulfiller);
    auto request = client_->bootstrap().castAs<wire::Cluster>().submitRequest();
    request.setRequestId(draw_request_id());
    auto list = request.initTasks(tasks);
    for (uint32_t i = 0; i < tasks; ++i) {
      list[i].initArgv(1).set(0, "/usr/bin/true");
      list[i].setUnits(1);
      if (ranks == 0) continue;
      list[i].initGang().setRanks(ranks);
      list[i].getGang().setEngine("cpu");
    }
    const int64_t began_ns = system_clock().boot_ns();
    auto answer = request.send();
    started.promise.wait(loop_.wait_scope());
    const double took_ms = static_cast<double>(system_clock().boot_ns() - began_ns) / 1e6;
    answer.wait(loop_.wait_scope());
    recorded.promise.wait(loop_.wait_scope());
    return took_ms;
  }

 private:
  static void count(uint32_t& seen, kj::Own<kj::PromiseFulfiller<void>>& all) {
    if (++seen == kRanks) all->fulfill();
  }

  EventLoop loop_;
  Runs runs_{loop_, 50};
  kj::Own<RpcConnection> client_;
  kj::Own<kj::PromiseFulfiller<void>> all_started_, all_recorded_;
  uint32_t started_ = 0, recorded_ = 0;
  std::vector<std::unique_ptr<SimulatedNode>> nodes_;
};

void show(const char* what, std::vector<double> took_ms) {
  std::sort(took_ms.begin(), took_ms.end());
  const auto at = [&](double share) {
    return took_ms[static_cast<size_t>(share * static_cast<double>(took_ms.size() - 1))];
  };
  fmt::print("{:22} {:>8.1f} {:>8.1f} {:>8.1f}\n", what, at(0.1), at(0.5), at(0.9));
}

int run(int argc, char** argv) {
  CLI::App app("How long a gang of 64 ranks takes to start on eight simulated nodes");
  uint32_t rounds = 30;
  app.add_option("--rounds", rounds, "of each, in turns")->check(CLI::Range(1, 10'000));
  CLI11_PARSE(app, argc, argv);
  test::Cluster cluster({.nodes = 0, .lease_ms = 60'000});
  cluster.client().disconnect();  // a thread has one event loop
  Start start(*Address::parse(cluster.address()));
  std::vector<double> gangs_ms, tasks_ms;
  for (uint32_t i = 0; i < rounds; ++i) {
    gangs_ms.push_back(start.run(1, kRanks));
    tasks_ms.push_back(start.run(kRanks, 0));
  }
  fmt::print("ms from submit until all 64 are started  (10 %, median, 90 %; goal: {} ms)\n",
             kGoalMs);
  show("a gang of 64 ranks", std::move(gangs_ms));
  show("64 tasks", std::move(tasks_ms));
  return 0;
}

}  // namespace
}  // namespace tierpilot::bench

int main(int argc, char** argv) {
  return tierpilot::bench::run_main(argc, argv, tierpilot::bench::run);
}
