// What a scheduler that knows all tasks to come reaches, beside the policies that do not. It begins
// with the decisions of whichever policy is the best on these tasks and tries other nodes for each
// of them, by simulating all that follows; what is better is kept (fortified rollout: Bertsekas,
// Tsitsiklis, Wu: Journal of Heuristics 3, 1997). So it is never worse than any policy, and what it
// reaches can be reached, which cannot be said of the bound.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "policies/placement/registry.h"
#include "policies/scheduling/estimate.h"
#include "policies/sim/evaluation/bound.h"
#include "policies/sim/evaluation/suite.h"
#include "policies/sim/simulator.h"

namespace tierpilot::sim {
namespace {

struct Options {
  uint32_t tasks = 600;
  uint32_t candidates = 8;  // the best by the estimate; and the best full node
  uint32_t passes = 1;
  uint32_t seeds = 3;
  uint64_t first_seed = 7;
  uint32_t threads = std::max(1U, std::thread::hardware_concurrency());
  std::string weights;
};

template <class Value>
Value must(Result<Value> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

class Policies {
 public:
  explicit Policies(const std::string& file) {
    for (const PlacementModule& module : modules_) {
      if (module.learning && module.learning->traits().weights_file.empty()) continue;
      if (module.learning)
        if (Status read = module.learning->load(file); !read)
          throw std::runtime_error(read.error().message);
      names_.push_back(module.info.name);
    }
  }
  const std::vector<std::string>& names() const { return names_; }
  std::unique_ptr<Policy> make(const std::string& name, uint64_t seed) const {
    auto policy = must(modules_.make(name, seed));
    policy->explain(false);
    return policy;
  }

 private:
  PlacementModules modules_ = placement_modules();
  std::vector<std::string> names_;
};

struct Choice {
  size_t node = kNoNode;
  size_t held_for = kNoNode;
  bool operator==(const Choice&) const = default;
};

// A whole run: what was chosen, before what, and how it ended.
struct Plan {
  std::vector<Choice> choices;
  std::vector<View> views;
  double response_s = HUGE_VAL;
};

// Repeats the beginning of a plan, then takes `tried`, then goes on by a policy.
class Trial final : public Policy {
 public:
  Trial(const Plan& plan, size_t begin, Choice tried, Policy& then)
      : plan_(plan), begin_(begin), tried_(tried), then_(then) {}

  bool holds() const override { return true; }
  Decision decide(const View& view) override {
    const size_t now = made.choices.size();
    made.views.push_back(view);
    Decision decision;
    if (now > begin_) {
      decision = then_.decide(view);
    } else {
      const Choice choice = now < begin_ ? plan_.choices[now] : tried_;
      decision.node = choice.node;
      decision.held_for = choice.held_for;
    }
    made.choices.push_back({decision.node, decision.held_for});
    return decision;
  }

  Plan made;

 private:
  const Plan& plan_;
  const size_t begin_;
  const Choice tried_;
  Policy& then_;
};

// What a policy does by itself.
class Recorder final : public Policy {
 public:
  explicit Recorder(Policy& policy) : policy_(policy) {}
  bool holds() const override { return policy_.holds(); }
  Decision decide(const View& view) override {
    Decision decision = policy_.decide(view);
    made.views.push_back(view);
    made.choices.push_back({decision.node, decision.held_for});
    return decision;
  }

  Plan made;

 private:
  Policy& policy_;
};

struct Outcome {
  double best_heuristic_s = HUGE_VAL;
  double dqn_s = 0;
  double knowing_s = 0;
  double bound_s = 0;
};

class Scene {
 public:
  Scene(EvaluationCell cell, const Policies& policies, const Options& options, uint64_t seed)
      : cell_(std::move(cell)), policies_(policies), options_(options), seed_(seed) {
    cell_.workload.tasks = options.tasks;
    workload_ = generate(cell_.workload, cell_.cluster, seed);
  }

  Outcome play() {
    Outcome outcome;
    outcome.bound_s = mean_response_bound_s(cell_.cluster, workload_);
    Plan best;
    for (const std::string& name : policies_.names()) {
      const auto policy = policies_.make(name, seed_);
      Recorder recorder(*policy);
      recorder.made.response_s = response_s(recorder);
      if (name == "dqn")
        outcome.dqn_s = recorder.made.response_s;
      else
        outcome.best_heuristic_s = std::min(outcome.best_heuristic_s, recorder.made.response_s);
      if (recorder.made.response_s < best.response_s) best = std::move(recorder.made), best_ = name;
    }
    for (uint32_t pass = 0; pass < options_.passes; ++pass) improve(best);
    outcome.knowing_s = best.response_s;
    return outcome;
  }

 private:
  double response_s(Policy& policy) const {
    return must(simulate(cell_.cluster, workload_, policy, {.seed = seed_})).response_s.mean;
  }

  void improve(Plan& best) const {
    for (size_t at = 0; at < best.choices.size(); ++at) {
      const View view = best.views[at];
      for (const Choice choice : others(view, best.choices[at])) {
        const auto then = policies_.make(best_, seed_);
        Trial trial(best, at, choice, *then);
        trial.made.response_s = response_s(trial);
        if (trial.made.response_s < best.response_s) best = std::move(trial.made);
      }
    }
  }

  std::vector<Choice> others(const View& view, Choice taken) const {
    std::vector<std::pair<double, size_t>> able, full;
    const NodeRates typical = typical_rates(view);
    for (size_t i = 0; i < view.nodes.size(); ++i) {
      const NodeState& node = view.nodes[i];
      const double finish_s = estimate_finish(view.task, node, typical).finish_s();
      if (node.candidate)
        able.emplace_back(finish_s, i);
      else if (node.full && view.may_hold && node.held_fast_bytes > 0)
        full.emplace_back(finish_s, i);
    }
    std::sort(able.begin(), able.end());
    able.resize(std::min<size_t>(able.size(), options_.candidates));
    std::vector<Choice> choices;
    for (const auto& [finish_s, node] : able) choices.push_back({node, kNoNode});
    if (!full.empty() && !able.empty())
      choices.push_back({kNoNode, std::min_element(full.begin(), full.end())->second});
    std::erase(choices, taken);
    return choices;
  }

  EvaluationCell cell_;
  const Policies& policies_;
  const Options& options_;
  const uint64_t seed_;
  Workload workload_;
  std::string best_;
};

std::vector<Outcome> play_all(std::vector<Scene>& scenes, uint32_t threads) {
  std::vector<Outcome> outcomes(scenes.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < scenes.size(); i = next++) outcomes[i] = scenes[i].play();
  };
  std::vector<std::jthread> others;
  for (uint32_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  return outcomes;
}

void run(const Options& options) {
  const Policies policies(options.weights);
  std::vector<std::string> names;
  std::vector<Scene> scenes;
  const Suite suite = must(make_suite("short"));
  for (const EvaluationCell& cell : suite.cells) {
    if (cell.cluster.node_count() != 8) continue;
    names.push_back(cell.workload.name);
    for (uint64_t seed = 0; seed < options.seeds; ++seed)
      scenes.emplace_back(cell, policies, options, options.first_seed + seed);
  }
  const std::vector<Outcome> outcomes = play_all(scenes, options.threads);
  fmt::print("{:20}{:>17}{:>9}{:>15}{:>9}{:>20}{:>15}\n", "8 nodes", "best heuristic s", "dqn s",
             "clairvoyant s", "bound s", "clairvoyant / dqn %", "bound / dqn %");
  std::vector<double> shares;
  for (size_t row = 0; row < names.size(); ++row) {
    Outcome mean{.best_heuristic_s = 0};
    for (size_t i = row * options.seeds; i < (row + 1) * options.seeds; ++i) {
      mean.best_heuristic_s += outcomes[i].best_heuristic_s / options.seeds;
      mean.dqn_s += outcomes[i].dqn_s / options.seeds;
      mean.knowing_s += outcomes[i].knowing_s / options.seeds;
      mean.bound_s += outcomes[i].bound_s / options.seeds;
    }
    shares.push_back(100 * mean.knowing_s / mean.dqn_s);
    fmt::print("{:20}{:17.4f}{:9.4f}{:15.4f}{:9.4f}{:20.1f}{:15.1f}\n", names[row],
               mean.best_heuristic_s, mean.dqn_s, mean.knowing_s, mean.bound_s, shares.back(),
               100 * mean.bound_s / mean.dqn_s);
  }
  fmt::print("{:70}{:20.1f}\n", "median", median(shares));
}

}  // namespace
}  // namespace tierpilot::sim

int main(int argc, char** argv) {
  tierpilot::sim::Options options;
  CLI::App app("What a scheduler that knows the future reaches, beside the dqn and the heuristics");
  app.add_option("--weights", options.weights, "of the dqn")->required();
  app.add_option("--tasks", options.tasks)->check(CLI::Range(10U, 100'000U));
  app.add_option("--candidates", options.candidates)->check(CLI::Range(1U, 1000U));
  app.add_option("--passes", options.passes)->check(CLI::Range(0U, 100U));
  app.add_option("--seeds", options.seeds)->check(CLI::Range(1U, 1000U));
  app.add_option("--first-seed", options.first_seed);
  app.add_option("--threads", options.threads)->check(CLI::Range(1U, 1024U));
  CLI11_PARSE(app, argc, argv);
  try {
    tierpilot::sim::run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return 1;
  }
}
