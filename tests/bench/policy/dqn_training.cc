// What the dqn gains, on stand-in clusters: trains it on small ones, with what tasks took
// themselves and with what they cost others (the same future run twice), and evaluates it on unseen
// seeds and on larger clusters against every heuristic. Repeats the measurements behind the default
// settings.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "policies/dqn/dqn_learner.h"
#include "policies/learning/torch_thread.h"
#include "policies/published/weights.h"
#include "policies/registry.h"
#include "tests/support/toy_cluster.h"

namespace tierpilot {
namespace {

struct Options {
  DqnSettings dqn;
  uint64_t seed = 1;
  int rounds = 60;
  int tasks = 400;  // of a round, and of each evaluation
  double rollout_share = 0.1;
  bool json = false;
};

// Clusters as different as training should have them.
ToySettings draw_cluster(std::mt19937_64& generator) {
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(generator);
  };
  ToySettings cluster;
  cluster.nodes = 4U << generator() % 4;
  cluster.offered_load = draw(0.2, 0.8);
  cluster.speed_spread = draw(0, 3);
  cluster.backlog_units = 2;
  cluster.datasets = 10 * cluster.nodes;
  cluster.write_share = draw(0, 0.4);
  cluster.popularity_exponent = draw(0.3, 1.3);
  cluster.mean_compute_s = draw(0.08, 0.3);
  cluster.fetch_bytes_per_s = draw(0.2e9, 2e9);
  return cluster;
}

class Training {
 public:
  explicit Training(const Options& options)
      : options_(options),
        generator_(options.seed),
        learner_(options.dqn, options.seed, 16384, mailbox_),
        acting_(make_dqn_policy(options.dqn, options.seed, mailbox_)) {}

  void round() {
    ToyCluster cluster(draw_cluster(generator_), generator_());
    for (int i = 0; i < options_.tasks; ++i) {
      const View& view = cluster.arrive();
      for (const auto& end : cluster.take_ends())
        learner_.finished(first_id_ + end.id, end.since_decision_s);
      const size_t node = acting_->decide(view, {}).node;
      learner_.decided(first_id_ + static_cast<uint64_t>(i), view, node);
      if (std::bernoulli_distribution(options_.rollout_share)(generator_)) roll_out(cluster, view);
      cluster.place(node);
      while (learner_.ready()) learner_.train_batch();
      learner_.copy_weights_if_due();
    }
    first_id_ += static_cast<uint64_t>(options_.tasks);
  }
  const DqnLearner& learner() const { return learner_; }

 private:
  // The same future with the task on a node and on the one that the estimate prefers.
  void roll_out(const ToyCluster& cluster, const View& view) {
    std::vector<size_t> candidates;
    for (size_t i = 0; i < view.nodes.size(); ++i)
      if (view.nodes[i].candidate) candidates.push_back(i);
    const size_t preferred = estimate_->decide(view, {}).node;
    const size_t other = candidates[generator_() % candidates.size()];
    const double added_s =
        other == preferred ? 0 : others_s(cluster, other) - others_s(cluster, preferred);
    learner_.cost_others(view, other, added_s);
  }

  double others_s(ToyCluster cluster, size_t node) {
    const auto policy = make_dqn_policy(greedy_, 1, rollout_mailbox());
    const size_t tasks = std::max<size_t>(64, 8 * cluster.view().nodes.size());
    cluster.place(node);
    double sum = 0;
    for (size_t i = 0; i < tasks; ++i) {
      const View& view = cluster.arrive();
      cluster.place(policy->decide(view, {}).node);
      sum += cluster.last_response_s();
    }
    return sum;
  }

  std::shared_ptr<Mailbox<DqnWeights>> rollout_mailbox() {
    const uint64_t version = learner_.counters().weights_version;
    if (!rollout_weights_ || rollout_weights_->version != version)
      rollout_weights_ = std::make_shared<const DqnWeights>(learner_.weights());
    auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
    mailbox->put(rollout_weights_);
    return mailbox;
  }

  Options options_;
  std::mt19937_64 generator_;
  std::shared_ptr<Mailbox<DqnWeights>> mailbox_ = std::make_shared<Mailbox<DqnWeights>>();
  DqnLearner learner_;
  std::unique_ptr<Policy> acting_;
  std::unique_ptr<Policy> estimate_ = *make_policy("earliest-finish", {});
  DqnSettings greedy_ = [] {
    DqnSettings settings;
    settings.epsilon = 0;
    return settings;
  }();
  std::shared_ptr<const DqnWeights> rollout_weights_;
  uint64_t first_id_ = 0;
};

double mean_response_ms(Policy& policy, const ToySettings& settings, uint64_t seed, int tasks) {
  ToyCluster cluster(settings, seed);
  double sum = 0;
  for (int i = 0; i < tasks; ++i) {
    const View& view = cluster.arrive();
    cluster.place(policy.decide(view, {}).node);
    sum += cluster.last_response_s();
  }
  return sum / tasks * 1e3;
}

struct Workload {
  const char* name;
  ToySettings settings;
};

std::vector<Workload> held_out() {
  const ToySettings base{
      .nodes = 8, .datasets = 80, .offered_load = 0.5, .mean_compute_s = 0.15, .backlog_units = 2};
  std::vector<Workload> all;
  const auto add = [&](const char* name, auto change) {
    ToySettings settings = base;
    change(settings);
    all.push_back({name, settings});
  };
  add("read mostly", [](ToySettings& s) { s.write_share = 0.02; });
  add("write heavy", [](ToySettings& s) { s.write_share = 0.5; });
  add("flat popularity", [](ToySettings& s) { s.popularity_exponent = 0.2; });
  add("unlike nodes", [](ToySettings& s) { s.speed_spread = 2.5; });
  add("near saturation", [](ToySettings& s) { s.offered_load = 0.75; });
  add("slow network", [](ToySettings& s) { s.fetch_bytes_per_s = 0.15e9; });
  add("32 nodes", [](ToySettings& s) { s.nodes = 32, s.datasets = 320, s.speed_spread = 1; });
  add("128 nodes", [](ToySettings& s) { s.nodes = 128, s.datasets = 1280, s.speed_spread = 1; });
  return all;
}

nlohmann::json evaluate(const DqnWeights& trained, const Options& options) {
  nlohmann::json rows = nlohmann::json::array();
  DqnSettings greedy = options.dqn;
  greedy.epsilon = 0;
  for (const Workload& workload : held_out()) {
    nlohmann::json row{{"workload", workload.name}};
    double best = 1e300;
    const auto score = [&](const char* name, auto make) {
      double sum = 0;
      constexpr int kSeeds = 3;
      for (uint64_t seed = 1001; seed < 1001 + kSeeds; ++seed) {
        const std::unique_ptr<Policy> policy = make();
        policy->explain(false);
        sum += mean_response_ms(*policy, workload.settings, seed, options.tasks * 4);
      }
      return row["response_ms"][name] = sum / kSeeds, sum / kSeeds;
    };
    for (const char* name : {"random", "round-robin", "least-loaded", "locality-greedy",
                             "locality-load", "earliest-finish", "least-cost"})
      best = std::min(best, score(name, [&] { return *make_policy(name, {.seed = 5}); }));
    const auto with = [&](const DqnWeights& weights) {
      auto mailbox = std::make_shared<Mailbox<DqnWeights>>();
      mailbox->put(std::make_shared<const DqnWeights>(weights));
      return make_dqn_policy(greedy, 1, mailbox);
    };
    DqnWeights own = trained;
    own.others = TokenNet();
    row["own_gain"] = 1 - score("dqn, own cost only", [&] { return with(own); }) / best;
    row["gain"] = 1 - score("dqn", [&] { return with(trained); }) / best;
    row["best_heuristic_ms"] = best;
    rows.push_back(std::move(row));
  }
  return rows;
}

int run(const Options& options) {
  use_one_torch_thread();
  Training training(options);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < options.rounds; ++i) training.round();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const auto rows = evaluate(training.learner().weights(), options);
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"schema", 1}, {"seconds", seconds}, {"rows", rows}}.dump(2));
    return 0;
  }
  const LearnerCounters counters = training.learner().counters();
  fmt::print(
      "{} decisions, {} batches, loss {:.3f}, {:.0f} "
      "s\n{:18}{:>10}{:>8}{:>8}{:>8}{:>8}{:>10}{:>10}\n",
      counters.decisions, counters.batches, counters.loss, seconds, "mean response ms", "best",
      "finish", "own", "dqn", "", "own gain", "dqn gain");
  for (const auto& row : rows) {
    const auto& ms = row["response_ms"];
    fmt::print("{:18}{:10.1f}{:8.1f}{:8.1f}{:8.1f}{:8.1f}{:9.1f}%{:9.1f}%\n",
               row["workload"].get<std::string>(), row["best_heuristic_ms"].get<double>(),
               ms["earliest-finish"].get<double>(), ms["least-cost"].get<double>(),
               ms["dqn, own cost only"].get<double>(), ms["dqn"].get<double>(),
               row["own_gain"].get<double>() * 100, row["gain"].get<double>() * 100);
  }
  return 0;
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  tierpilot::Options options;
  options.dqn.epsilon = 0.05;
  CLI::App app("What the dqn gains over heuristics on stand-in clusters");
  app.add_option("--rounds", options.rounds, "Clusters it is trained on");
  app.add_option("--tasks", options.tasks, "Tasks on each of them")->check(CLI::Range(10, 100000));
  app.add_option("--rollouts", options.rollout_share,
                 "Share of decisions whose cost to others is counted");
  app.add_option("--gamma", options.dqn.gamma);
  app.add_option("--rate", options.dqn.learning_rate);
  app.add_option("--batches-per-experience", options.dqn.batches_per_experience);
  app.add_option("--seed", options.seed);
  app.add_flag("--json", options.json, "Print JSON");
  CLI11_PARSE(app, argc, argv);
  return tierpilot::run(options);
}
