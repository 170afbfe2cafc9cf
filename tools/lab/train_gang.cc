#include "tools/lab/train_gang.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "policies/learning/saved_bytes.h"
#include "policies/sim/gang/ac_training.h"
#include "policies/sim/gang/learned_placers.h"
#include "tools/lab/progress_bar.h"

namespace tierpilot::lab {
namespace {

using nlohmann::ordered_json;

Result<gang::AcTrainingSettings> read_settings(const std::string& config) {
  auto reader = ConfigReader::load(config);
  if (!reader) return tl::unexpected(reader.error());
  gang::AcTrainingSettings settings;
  auto section = reader->section("training");
  const auto count = [&](const char* key, uint32_t& value, int64_t most) {
    value = static_cast<uint32_t>(section.integer(key, value, 1, most));
  };
  const auto number = [&](const char* key, auto& value, double least, double most) {
    value = static_cast<std::decay_t<decltype(value)>>(section.number(key, value, least, most));
  };
  settings.seed = static_cast<uint64_t>(section.integer("seed", 1, 0, INT64_MAX));
  count("rounds", settings.rounds, 1'000'000);
  count("scenes", settings.scenes, 10'000);
  count("passes", settings.passes, 100);
  count("batch", settings.batch, 1'000'000);
  number("rate", settings.rate, 1e-9, 1);
  number("critic_rate", settings.critic_rate, 1e-9, 1);
  number("clip", settings.clip, 0.001, 10);
  number("entropy", settings.entropy, 0, 10);
  number("horizon_h", settings.horizon_h, 1e-3, 1e6);
  number("trace", settings.trace, 0, 1);
  number("own_hours", settings.own_hours, 0, 1000);
  if (auto status = reader->finish(); !status) return tl::unexpected(status.error());
  return settings;
}

// Means of each twentieth of the rounds.
ordered_json curve_json(const std::vector<gang::AcRound>& rounds) {
  ordered_json rows = ordered_json::array();
  const size_t step = std::max<size_t>(rounds.size() / 20, 1);
  for (size_t begin = 0; begin < rounds.size(); begin += step) {
    const size_t end = std::min(begin + step, rounds.size());
    gang::AcRound mean;
    for (size_t i = begin; i < end; ++i) {
      mean.cost += rounds[i].cost / static_cast<double>(end - begin);
      mean.entropy += rounds[i].entropy / static_cast<double>(end - begin);
      mean.changed += rounds[i].changed / static_cast<double>(end - begin);
    }
    rows.push_back({{"rounds", end},
                    {"cost", mean.cost},
                    {"entropy_nats", mean.entropy},
                    {"differs_from_heuristic", mean.changed}});
  }
  return rows;
}

Result<ordered_json> trained(const std::string& config, const std::string& weights,
                             const std::string& trace) {
  const auto settings = read_settings(config);
  if (!settings) return tl::unexpected(settings.error());
  std::vector<gang::Job> jobs;
  if (!trace.empty()) {
    auto read = gang::trace_jobs(trace, gang::TraceHalf::kFirst);
    if (!read) return tl::unexpected(read.error());
    jobs = std::move(*read);
  }
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  std::vector<gang::AcRound> rounds;
  const auto net = gang::train_ac(
      *settings, [&](uint64_t seed) { return gang::training_scene(seed, jobs); },
      [&](const gang::AcRound& round) {
        rounds.push_back(round);
        bar.show(1.0 * round.number / settings->rounds);
      });
  bar.clear();
  const auto origin =
      fmt::format("tierctl policy train --kind gang --config {}, seed {}",
                  std::filesystem::path(config).filename().string(), settings->seed);
  if (auto saved = save_bytes(weights, gang::ac_weights_text(net, origin), 0644); !saved)
    return tl::unexpected(saved.error());
  return ordered_json{{"kind", "gang"}, {"output", weights}, {"curve", curve_json(rounds)}};
}

}  // namespace

int train_gang(const Output& output, const std::string& config, const std::string& weights,
               const std::string& trace) {
  const auto value = trained(config, weights, trace);
  if (!value) return print_error(output, value.error());
  if (output.json) return print(output, *value, {});
  *output.out << format_table(
                     *value,
                     {.title = "Training: cost of a decision, and how often it is not the "
                               "heuristic's",
                      .rows = "/curve",
                      .columns = {{"ROUNDS", "/rounds", Format::kNumber},
                                  {"COST", "/cost", Format::kNumber},
                                  {"ENTROPY", "/entropy_nats", Format::kNumber},
                                  {"DIFFERS", "/differs_from_heuristic", Format::kPercent}}})
              << fmt::format("\nThe weights are in {}\n", weights);
  return kExitOk;
}

}  // namespace tierpilot::lab
