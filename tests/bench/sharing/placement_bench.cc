// How long placing one request on 10,000 GPUs takes: a cluster that fills up, and then lives, each
// placement after a release elsewhere. "First" are requests of a kind that the placer has not seen;
// "anew" are of a placer that has seen nothing, when the cluster is as full as it gets.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <set>

#include "base/random.h"
#include "policies/sharing/placement.h"
#include "policies/sim/sharing/pods.h"

namespace tierpilot::sharing {
namespace {

struct Times {
  std::vector<double> us;
  void print(const char* what) {
    if (us.empty()) return;
    std::sort(us.begin(), us.end());
    const auto at = [&](double share) {
      return us[static_cast<size_t>(share * static_cast<double>(us.size() - 1))];
    };
    fmt::print("  {:<8} {:>7} placements: p50 {:7.1f} us, p99 {:7.1f} us, most {:7.1f} us\n", what,
               us.size(), at(0.5), at(0.99), at(1));
  }
};

struct Bench {
  Cluster cluster;
  Placer placer;
  const Scorer& scorer;
  std::set<std::pair<uint32_t, std::pair<uint32_t, uint64_t>>> seen = {};
  std::vector<std::pair<Request, Placement>> running = {};
  Times first = {}, again = {}, anew = {};

  void place(const Request& asked) {
    const Request request = scorer.given(asked);
    const auto begin = std::chrono::steady_clock::now();
    auto placement = placer.choose(cluster, request);
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    const bool is_new =
        seen.insert({request.cpu_milli, {request.total_milli(), request.memory_bytes}}).second;
    (is_new ? first : again).us.push_back(took.count());
    if (!placement) return;
    cluster.take(request, *placement);
    running.emplace_back(request, std::move(*placement));
  }

  void place_anew(const Request& asked) {
    Placer fresh(scorer);
    const auto begin = std::chrono::steady_clock::now();
    fresh.choose(cluster, scorer.given(asked));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    anew.us.push_back(took.count());
  }

  void release_one(SeededRandom& random) {
    if (running.empty()) return;
    std::swap(running[random.below(running.size())], running.back());
    cluster.release(running.back().first, running.back().second);
    running.pop_back();
  }
};

int run(uint32_t nodes, uint32_t pods) {
  const auto trace = generate_pods(1, nodes, pods);
  std::vector<Request> requests;
  for (const auto& pod : trace.pods) requests.push_back(pod.request);
  fmt::print("{} nodes, {} GPUs\n", nodes, Cluster(trace.nodes).capacity_milli() / kWholeUnit);
  for (const char* policy : {"first-fit", "fgd", "share"}) {
    const auto scorer = make_scorer(policy, {requests, {}});
    if (!scorer) return 1;
    Bench bench{Cluster(trace.nodes), Placer(**scorer), **scorer};
    for (const auto& request : requests) bench.place(request);
    SeededRandom random(2);
    for (size_t i = 0; i < requests.size(); ++i) {
      bench.release_one(random);
      if (i % 16 == 0) bench.place_anew(requests[i]);
      bench.place(requests[i]);
    }
    fmt::print("{}\n", policy);
    bench.first.print("first");
    bench.again.print("again");
    bench.anew.print("anew");
  }
  return 0;
}

}  // namespace
}  // namespace tierpilot::sharing

int main(int argc, char** argv) {
  CLI::App app{"Placement of shares on a large cluster"};
  uint32_t nodes = 2000, pods = 12'000;
  app.add_option("--nodes", nodes)->check(CLI::Range(1U, 100'000U))->capture_default_str();
  app.add_option("--pods", pods)->check(CLI::Range(1U, 1'000'000U))->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return tierpilot::sharing::run(nodes, pods);
}
