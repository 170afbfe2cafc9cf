// tierctl policy train: makes weights for the dqn by simulation.
#include <fmt/format.h>
#include <malloc.h>
#include <openssl/evp.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "policies/placement/dqn/module.h"
#include "policies/sim/evaluation/training.h"
#include "policies/sim/plot/chart.h"
#include "tools/lab/command.h"
#include "tools/lab/evaluation.h"
#include "tools/lab/plots.h"
#include "tools/lab/progress_bar.h"
#include "tools/lab/train_gang.h"
#include "tools/output/laboratory_help.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;
using Episode = sim::Training::Episode;

struct TrainOptions {
  std::string kind = "dqn";
  std::string config;
  std::string output;  // empty: the usual name
  std::string trace;
  std::string history, record;
  std::string suite = "short";
  std::string plots;
};

std::string sha256(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest, &size, EVP_sha256(), nullptr);
  return fmt::format("{:02x}", fmt::join(digest, digest + size, ""));
}

// Before minutes of training, not after them.
Status check_writable(const std::filesystem::path& file) {
  const auto folder = file.has_parent_path() ? file.parent_path() : ".";
  if (access(folder.c_str(), W_OK) == 0) return {};
  return fail_errno(errno,
                    fmt::format("--output: folder '{}' cannot be written to", folder.string()));
}

struct Curve {
  std::vector<sim::Generation> search;
  std::vector<Episode> episodes;
};

Result<Curve> train(sim::Training& training, const sim::TrainingSettings& settings) {
  Curve curve;
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  // The search takes most of the time.
  constexpr double kSearch = 0.8;
  const auto status = training.run(
      std::max(1U, std::thread::hardware_concurrency()),
      [&](const sim::Generation& generation) {
        curve.search.push_back(generation);
        return bar.show(kSearch * generation.number / settings.search.generations);
      },
      [&](const Episode& episode) {
        curve.episodes.push_back(episode);
        return bar.show(kSearch + (1 - kSearch) * episode.number / settings.episodes);
      });
  bar.clear();
  if (!status) return tl::unexpected(status.error());
  return curve;
}

// Each twentieth of the search.
ordered_json search_json(const std::vector<sim::Generation>& search) {
  ordered_json rows = ordered_json::array();
  const size_t step = std::max<size_t>(search.size() / 20, 1);
  for (size_t i = step - 1; i < search.size(); i += step)
    rows.push_back({{"generations", search[i].number}, {"cost", search[i].cost}});
  return rows;
}

// Response over the best heuristic's, of each twentieth of the episodes.
ordered_json curve_json(const std::vector<Episode>& curve) {
  ordered_json rows = ordered_json::array();
  const size_t step = std::max<size_t>(curve.size() / 20, 1);
  for (size_t begin = 0; begin < curve.size(); begin += step) {
    const size_t end = std::min(begin + step, curve.size());
    double logs = 0;
    double trial = 0;
    for (size_t i = begin; i < end; ++i) {
      logs += std::log(curve[i].response) / static_cast<double>(end - begin);
      if (curve[i].trial > 0) trial = curve[i].trial;
    }
    rows.push_back(
        {{"episodes", end}, {"response_to_best", std::exp(logs)}, {"loss", curve[end - 1].loss}});
    set_or_unavailable(rows.back(), "trial", trial > 0 ? std::optional(trial) : std::nullopt,
                       "no trial was due");
  }
  return rows;
}

ordered_json externality_json(const ExternalityWeights& weights) {
  ordered_json terms = ordered_json::object();
  for (size_t i = 0; i < kExternalityCount; ++i)
    terms[std::string(kExternalityTerms[i].name)] = weights[i];
  return terms;
}

// As the training's settings have it, for another training to start from.
std::string externality_table(const ordered_json& terms) {
  std::string table = "Costs to others, as found:\n[externality]\n";
  for (const auto& [name, weight] : terms.items())
    table += fmt::format("\"{}\" = {:.3f}\n", name, weight.get<double>());
  return table;
}

Status plot_curve(const ordered_json& curve, double searched_trial, const std::string& folder) {
  sim::plot::Series series{.name = "while it explores", .points = {}};
  sim::plot::Series trials{.name = "trials, always the same tasks", .points = {}};
  sim::plot::Series best{.name = "best heuristic of each run", .points = {}};
  trials.points.push_back({0, searched_trial});
  for (const auto& row : curve) {
    const double x = row["episodes"];
    series.points.push_back({x, row["response_to_best"].get<double>()});
    if (row["trial"].is_number()) trials.points.push_back({x, row["trial"].get<double>()});
    best.points.push_back({x, 1});
  }
  return write_plot(std::filesystem::path(folder) / "learning-curve.svg",
                    sim::plot::to_svg(sim::plot::Chart{
                        .title = "Mean response while training",
                        .note = "over that of the best heuristic on the same tasks",
                        .x = {.title = "episodes"},
                        .y = {.title = "response", .unit = sim::plot::Unit::kShare},
                        .series = {series, trials, best}}));
}

Result<ordered_json> trained(const TrainOptions& options) {
  const auto settings = sim::read_training_settings(options.config);
  if (!settings) return tl::unexpected(settings.error());
  auto suite = sim::make_suite(options.suite);
  if (!suite) return tl::unexpected(suite.error());
  if (auto status = check_writable(options.output); !status) return tl::unexpected(status.error());
  if (auto status = open_plots(options.plots); !status) return tl::unexpected(status.error());
  sim::Training training(*settings);
  const auto curve = train(training, *settings);
  if (!curve) return tl::unexpected(curve.error());

  WeightsFile file{.weights = training.weights(), .features = settings->dqn.features};
  file.provenance = {
      .command = fmt::format("tierctl policy train --config {}",
                             std::filesystem::path(options.config).filename().string()),
      .config_digest = sha256(sim::describe(*settings)),
      .seed = settings->seed,
      .program_version = TIERPILOT_VERSION};
  const std::vector<std::string> policies{"locality-load",  "earliest-finish", "least-cost",
                                          "delay-locality", "delay-finish",    "dqn"};
  Policies trained;
  trained.modules.put(dqn_module({}, std::make_shared<const WeightsFile>(file)));
  const auto evaluated =
      run_suite(std::move(*suite), {policies}, trained.maker(), true, std::nullopt);
  if (!evaluated) return tl::unexpected(evaluated.error());
  auto value = evaluated_json(*evaluated);
  file.provenance.evaluation =
      ordered_json{{"suite", value["suite"]}, {"overall", value["overall"]}}.dump();
  if (auto status = save_weights(options.output, file); !status)
    return tl::unexpected(status.error());
  value["output"] = options.output;
  value["config_digest"] = file.provenance.config_digest;
  value["search"] = search_json(curve->search);
  value["externality"] = externality_json(file.weights.others);
  value["searched_trial"] = training.searched_trial();
  value["curve"] = curve_json(curve->episodes);
  if (!options.plots.empty())
    if (auto status = plot_curve(value["curve"], training.searched_trial(), options.plots); !status)
      return tl::unexpected(status.error());
  return value;
}

int run(const Context& context, const TrainOptions& options) {
  // Else every batch's tensors are mapped and unmapped, which takes as long as the training itself.
  mallopt(M_MMAP_THRESHOLD, 256 << 20);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  auto value = trained(options);
  if (!value) return print_error(context.output, value.error());
  if (!context.output.json) {
    *context.output.out
        << format_table(*value, {.title = "Search: ln of response over the best heuristic's, where "
                                          "worse counts more",
                                 .rows = "/search",
                                 .columns = {{"GENERATIONS", "/generations", Format::kNumber},
                                             {"COST", "/cost", Format::kNumber}}})
        << fmt::format("On the trials after the search: {:.4f}\n\n",
                       value->at("searched_trial").get<double>())
        << externality_table(value->at("externality")) << '\n'
        << format_table(*value, {.title = "Training: response over the best heuristic's",
                                 .rows = "/curve",
                                 .columns = {{"EPISODES", "/episodes", Format::kNumber},
                                             {"RESPONSE", "/response_to_best", Format::kNumber},
                                             {"TRIAL", "/trial", Format::kNumber},
                                             {"LOSS", "/loss", Format::kNumber}}})
        << '\n';
  }
  const int code = show_evaluation(context.output, *value);
  if (!context.output.json)
    *context.output.out << fmt::format("\nThe weights are in {}\n", options.output);
  return code;
}

int run_kind(const Context& context, TrainOptions options) {
  const bool gang = options.kind == "gang";
  if (options.output.empty()) options.output = gang ? "ac.weights" : "dqn.weights";
  if (!gang) return run(context, options);
  if (auto status = check_writable(options.output); !status)
    return print_error(context.output, status.error());
  return train_gang(context.output, {.config = options.config,
                                     .weights = options.output,
                                     .trace = options.trace,
                                     .history = options.history,
                                     .record = options.record});
}

}  // namespace

void add_train(CLI::App& policy, Context& context) {
  auto* command = policy.add_subcommand("train", laboratory_help::kPolicyTrain);
  auto options = std::make_shared<TrainOptions>();
  command
      ->add_option("--kind", options->kind,
                   "dqn: places tasks; gang: ac, which places training jobs of many units")
      ->check(CLI::IsMember({"dqn", "gang"}))
      ->capture_default_str();
  command
      ->add_option("--config", options->config,
                   "what to train (TOML): [training]; of the dqn also [search], [externality], "
                   "[dqn]")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("-o,--output", options->output,
                   "the weights (default: dqn.weights or ac.weights)")
      ->type_name("FILE");
  command
      ->add_option("--trace", options->trace,
                   "of kind gang: half of the jobs from the first half of a trace like Philly's")
      ->type_name("FILE");
  auto* history =
      command
          ->add_option("--history", options->history,
                       "of kind gang: all jobs are the gangs of 'history export', drawn again and "
                       "again")
          ->type_name("FILE")
          ->excludes("--trace");
  command
      ->add_option("--record", options->record,
                   "and the failures of that cluster, as 'unit rates --history' takes them "
                   "(default: many ways to fail)")
      ->type_name("FILE")
      ->needs(history);
  command->add_option("--suite", options->suite, "to evaluate them on in the end")
      ->type_name("quick|short|full|wide")
      ->capture_default_str();
  command->add_option("--plots", options->plots, "write the learning curve as SVG")
      ->type_name("FOLDER");
  command->callback([&context, options] {
    context.command = [&context, options] { return run_kind(context, *options); };
  });
}

}  // namespace tierpilot::lab
