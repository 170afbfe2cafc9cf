// What there is to gain by choosing nodes: a policy that knows all tasks to come tries every good
// candidate for each task by simulating the tasks after it, and takes the best (rollout: Bertsekas,
// Tsitsiklis, Wu: Journal of Heuristics 3, 1997). It improves on the heuristic that goes on after
// each trial, so no policy that does not know the future should be expected to gain as much.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "policies/registry.h"
#include "policies/sim/evaluation/bound.h"
#include "policies/sim/evaluation/externality_search.h"
#include "policies/sim/evaluation/suite.h"
#include "policies/sim/simulator.h"

namespace tierpilot::sim {
namespace {

struct Options {
  uint32_t tasks = 600;
  uint32_t horizon = 100;   // tasks after the one that is tried
  uint32_t candidates = 8;  // the best by the estimate
  uint64_t seed = 7;
};

// Repeats a past, then takes `tried` if there is one, then goes on by a heuristic.
class Rollout final : public Policy {
 public:
  Rollout(const std::vector<size_t>& past, size_t tried, Policy& then, View* seen = nullptr)
      : past_(past), tried_(tried), then_(then), seen_(seen) {}

  bool needs_observation() const override { return false; }
  Decision decide(const View& view, const Observation& observation) override {
    const size_t now = next_++;
    if (now == past_.size() && seen_) *seen_ = view;
    const size_t node = now < past_.size() ? past_[now] : now == past_.size() ? tried_ : kNoNode;
    if (node == kNoNode) return then_.decide(view, observation);
    Decision decision;
    decision.node = node;
    return decision;
  }

 private:
  const std::vector<size_t>& past_;
  const size_t tried_;
  Policy& then_;
  View* seen_;
  size_t next_ = 0;
};

class ResponseSum final : public Listener {
 public:
  void decided(Attempt, const View&, const Observation&, const Decision&) override {}
  void served(Attempt, const ServiceMeasure&, const RewardParts&) override {}
  void abandoned(Attempt) override {}
  void finished(Attempt, const TaskTimes& times) override { sum_s += times.response_s; }
  double sum_s = 0;
};

double must(const Result<RunResult>& result) {
  if (!result) throw std::runtime_error(result.error().message);
  return result->response_s.mean;
}

class Clairvoyant {
 public:
  Clairvoyant(const EvaluationCell& cell, const Workload& workload, const Options& options)
      : cell_(cell),
        workload_(workload),
        options_(options),
        heuristic_(make_externality_policy(delay_finish_externality(), kAllFeatures)) {}

  double response_s() {
    std::vector<size_t> past;
    while (past.size() < workload_.tasks.size()) past.push_back(best_after(past));
    Rollout rollout(past, kNoNode, *heuristic_);
    return must(simulate(cell_.cluster, workload_, rollout, {}));
  }

 private:
  size_t best_after(const std::vector<size_t>& past) {
    View view;
    size_t best = kNoNode;
    double least_s = sum_s(past, kNoNode, &view);
    for (const size_t node : candidates(view)) {
      const double sum = sum_s(past, node, nullptr);
      if (sum < least_s) least_s = sum, best = node;
    }
    return best != kNoNode ? best : heuristic_->decide(view, {}).node;
  }

  double sum_s(const std::vector<size_t>& past, size_t tried, View* seen) {
    Workload part = workload_;
    part.tasks.resize(std::min<size_t>(part.tasks.size(), past.size() + options_.horizon));
    Rollout rollout(past, tried, *heuristic_, seen);
    ResponseSum responses;
    must(simulate(cell_.cluster, part, rollout, {.listener = &responses}));
    return responses.sum_s;
  }

  std::vector<size_t> candidates(const View& view) const {
    std::vector<std::pair<double, size_t>> by_finish;
    const NodeRates typical = typical_rates(view);
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].candidate)
        by_finish.emplace_back(estimate_finish(view.task, view.nodes[i], typical).finish_s(), i);
    std::sort(by_finish.begin(), by_finish.end());
    std::vector<size_t> nodes;
    for (size_t i = 0; i < by_finish.size() && i < options_.candidates; ++i)
      nodes.push_back(by_finish[i].second);
    return nodes;
  }

  const EvaluationCell& cell_;
  const Workload& workload_;
  const Options& options_;
  std::unique_ptr<Policy> heuristic_;
};

void run(const Options& options) {
  fmt::print("{:18}{:>14}{:>14}{:>14}{:>12}{:>14}\n", "8 nodes", "delay-finish s", "clairvoyant s",
             "difference %", "bound s", "its room %");
  const auto suite = make_suite("short");
  for (EvaluationCell cell : suite->cells) {
    if (cell.cluster.node_count() != 8) continue;
    cell.workload.tasks = options.tasks;
    const Workload workload = generate(cell.workload, cell.cluster, options.seed);
    const auto heuristic = make_externality_policy(delay_finish_externality(), kAllFeatures);
    const double base_s = must(simulate(cell.cluster, workload, *heuristic, {}));
    const double knowing_s = Clairvoyant(cell, workload, options).response_s();
    const double bound_s = mean_response_bound_s(cell.cluster, workload);
    fmt::print("{:18}{:14.4f}{:14.4f}{:14.1f}{:12.4f}{:14.1f}\n", cell.workload.name, base_s,
               knowing_s, 100 * (knowing_s / base_s - 1), bound_s, 100 * (bound_s / base_s - 1));
  }
}

}  // namespace
}  // namespace tierpilot::sim

int main(int argc, char** argv) {
  tierpilot::sim::Options options;
  CLI::App app("What a policy that knows the future would gain by choosing other nodes");
  app.add_option("--tasks", options.tasks)->check(CLI::Range(10U, 100'000U));
  app.add_option("--horizon", options.horizon)->check(CLI::Range(1U, 100'000U));
  app.add_option("--candidates", options.candidates)->check(CLI::Range(1U, 1000U));
  app.add_option("--seed", options.seed);
  CLI11_PARSE(app, argc, argv);
  tierpilot::sim::run(options);
}
