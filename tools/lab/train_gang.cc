#include "tools/lab/train_gang.h"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/config.h"
#include "policies/learning/saved_bytes.h"
#include "policies/sim/gang/ac_training.h"
#include "policies/sim/gang/fleet_record.h"
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

using SceneMaker = std::function<gang::GangScene(uint64_t seed)>;

// Whole nodes fail in a record, so that each unit has its part of that.
Result<gang::GangHistory> history_of(const GangTrainingOptions& options) {
  constexpr double kUsualRepairH = 32;
  gang::GangHistory history;
  auto jobs = gang::read_gang_jobs(options.history);
  if (!jobs) return tl::unexpected(jobs.error());
  history.jobs = std::move(*jobs);
  if (options.record.empty()) return history;
  const auto record = gang::read_fleet_record(options.record, {}, kUsualRepairH);
  if (!record) return tl::unexpected(record.error());
  // The other half is what policies are judged on.
  history.hours = (record->split_day - record->begin_day) * 24;
  history.failures.resize(size_t{record->nodes} * history.units_per_node);
  for (const auto& fault : record->faults)
    for (uint32_t i = 0; i < history.units_per_node && fault.from_day < record->split_day; ++i)
      history.failures[size_t{fault.node} * history.units_per_node + i] +=
          1.0 / history.units_per_node;
  return history;
}

Result<SceneMaker> scenes_of(const GangTrainingOptions& options) {
  if (!options.history.empty()) {
    auto history = history_of(options);
    if (!history) return tl::unexpected(history.error());
    return [of = std::move(*history)](uint64_t seed) {
      return gang::recorded_training_scene(seed, of);
    };
  }
  std::vector<gang::Job> jobs;
  if (!options.trace.empty()) {
    auto read = gang::trace_jobs(options.trace, gang::TraceHalf::kFirst);
    if (!read) return tl::unexpected(read.error());
    jobs = std::move(*read);
  }
  return [of = std::move(jobs)](uint64_t seed) { return gang::training_scene(seed, of); };
}

// What trained them, to be repeated; files by their names.
std::string command_of(const GangTrainingOptions& options) {
  std::string command = "tierctl policy train --kind gang";
  for (const auto& [option, file] : {std::pair{"--config", options.config},
                                     {"--trace", options.trace},
                                     {"--history", options.history},
                                     {"--record", options.record}})
    if (!file.empty())
      command += fmt::format(" {} {}", option, std::filesystem::path(file).filename().string());
  return command;
}

Result<ordered_json> trained(const GangTrainingOptions& options) {
  const auto settings = read_settings(options.config);
  if (!settings) return tl::unexpected(settings.error());
  const auto scenes = scenes_of(options);
  if (!scenes) return tl::unexpected(scenes.error());
  ProgressBar bar(stderr, isatty(STDERR_FILENO) == 1);
  std::vector<gang::AcRound> rounds;
  const auto net = gang::train_ac(*settings, *scenes, [&](const gang::AcRound& round) {
    rounds.push_back(round);
    bar.show(1.0 * round.number / settings->rounds);
  });
  bar.clear();
  const auto origin = fmt::format("{}, seed {}", command_of(options), settings->seed);
  if (auto saved = save_bytes(options.weights, gang::ac_weights_text(net, origin), 0644); !saved)
    return tl::unexpected(saved.error());
  return ordered_json{{"kind", "gang"}, {"output", options.weights}, {"curve", curve_json(rounds)}};
}

}  // namespace

int train_gang(const Output& output, const GangTrainingOptions& options) {
  const auto value = trained(options);
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
              << fmt::format("\nThe weights are in {}\n", options.weights);
  return kExitOk;
}

}  // namespace tierpilot::lab
