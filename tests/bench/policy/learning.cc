// How fast the policies that learn do so on the stand-in cluster: heuristics run first while it
// watches, then its turn comes. Repeats the measurements behind the default settings.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/config.h"
#include "policies/placement/dqn/module.h"
#include "policies/placement/published/module.h"
#include "policies/placement/registry.h"
#include "tests/support/toy_run.h"

namespace tierpilot {
namespace {

struct Options {
  DqnSettings dqn;
  PublishedSettings published;
  uint64_t seed = 1;
  std::string learns = "dqn";
  ToySettings cluster;
  int tasks = 400;
  bool json = false;
};

int run(const Options& options) {
  auto modules = placement_modules();
  modules.put(dqn_module(options.dqn));
  modules.put(published_module(options.published));
  ToyRun toy(*modules.find(options.learns), options.seed, options.cluster);
  nlohmann::json rows = nlohmann::json::array();
  if (!options.json)
    fmt::print("{:16}{:>8}{:>8}{:>13}{:>9}{:>9}{:>8}{:>8}\n", "policy", "reward", "1/L",
               "response ms", "evicting", "batches", "loss", "s");
  const std::vector<std::string> policies{"random",        "least-loaded",    "locality-greedy",
                                          "locality-load", "earliest-finish", options.learns};
  for (const std::string& name : policies) {
    const auto begin = std::chrono::steady_clock::now();
    const ToyRun::Score score = toy.run(name, options.tasks);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!options.json)
      fmt::print("{:16}{:8.4f}{:8.3f}{:13.1f}{:9.2f}{:9}{:8.3f}{:8.1f}\n", name, score.reward_mean,
                 score.latency_term_mean, score.response_ms_mean, score.evicting_share,
                 toy.learner().counters().batches, toy.learner().counters().loss, seconds);
    rows.push_back({{"policy", name},
                    {"reward_mean", score.reward_mean},
                    {"latency_term_mean", score.latency_term_mean},
                    {"response_ms_mean", score.response_ms_mean},
                    {"evicting_share", score.evicting_share},
                    {"batches", toy.learner().counters().batches},
                    {"loss", toy.learner().counters().loss},
                    {"seconds", seconds}});
  }
  if (options.json) fmt::print("{}\n", nlohmann::json{{"schema", 1}, {"policies", rows}}.dump(2));
  return 0;
}

Result<PublishedSettings> read_settings(const std::vector<std::string>& lines) {
  auto reader =
      ConfigReader::parse(fmt::format("[dqn-published]\n{}\n", fmt::join(lines, "\n")), "--set");
  if (!reader) return tl::unexpected(reader.error());
  auto settings = read_published_settings(reader->section("dqn-published"));
  if (auto finished = reader->finish(); !finished) return tl::unexpected(finished.error());
  return settings;
}

}  // namespace
}  // namespace tierpilot

int main(int argc, char** argv) {
  tierpilot::Options options;
  bool quick = false;
  bool published = false;
  bool per_feature = false;
  CLI::App app("Learning speed on a stand-in cluster");
  app.add_flag("--published", published, "Train exactly as published");
  app.add_flag("--per-feature", per_feature, "One token per feature instead of one in all");
  app.add_flag("--quick", quick, "A network of width 64 and 200 tasks");
  app.add_flag("--json", options.json, "Print JSON");
  tierpilot::PublishedSettings& settings = options.published;
  double gamma = settings.gamma;
  double batches_per_experience = settings.batches_per_experience;
  auto* gamma_given = app.add_option("--gamma", gamma);
  auto* batches_given = app.add_option("--batches-per-experience", batches_per_experience);
  app.add_option("--load", options.cluster.offered_load, "Offered load of the cluster");
  app.add_option("--tasks", options.tasks, "Tasks per policy")->check(CLI::Range(10, 100000));
  app.add_option("--nodes", options.cluster.nodes)->check(CLI::Range(1, 128));
  app.add_option("--spread", options.cluster.speed_spread, "Powers of two between node speeds");
  app.add_option("--backlog", options.cluster.backlog_units, "Units a node takes beyond its own");
  app.add_option("--learns", options.learns, "dqn or dqn-published")
      ->check(CLI::IsMember({"dqn", "dqn-published"}));
  app.add_option("--seed", options.seed);
  std::string loss;
  app.add_option("--loss", loss, "published or mended, all other settings being equal")
      ->check(CLI::IsMember({"published", "mended"}));
  std::vector<std::string> changed;
  app.add_option("--set", changed, "KEY = VALUE of [dqn-published], over --published if given")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  CLI11_PARSE(app, argc, argv);

  if (published) changed.insert(changed.begin(), "preset = \"published\"");
  if (auto read = tierpilot::read_settings(changed); read) {
    settings = *read;
  } else {
    fmt::print(stderr, "error: {}\n", read.error().message);
    return 2;
  }
  if (!loss.empty())
    settings.loss =
        loss == "published" ? tierpilot::LossForm::kPublished : tierpilot::LossForm::kWeighted;
  if (*gamma_given) settings.gamma = options.dqn.gamma = gamma;
  if (*batches_given)
    settings.batches_per_experience = options.dqn.batches_per_experience = batches_per_experience;
  if (per_feature) settings.network.tokens = tierpilot::InputTokens::kPerFeature;
  if (quick) {
    settings.network.width = 64;
    settings.network.feed_forward = 128;
    options.tasks = 200;
  }
  return tierpilot::run(options);
}
