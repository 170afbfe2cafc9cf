#include <fmt/format.h>

#include "base/config.h"
#include "policies/sim/evaluation/training.h"

namespace tierpilot::sim {
namespace {

void read_count(ConfigSection& section, std::string_view key, uint32_t& value, int64_t min,
                int64_t max) {
  value = static_cast<uint32_t>(section.integer(key, value, min, max));
}

SearchSettings read_search(ConfigSection section) {
  SearchSettings search;
  read_count(section, "generations", search.generations, 0, 100'000);
  read_count(section, "population", search.population, 4, 10'000);
  read_count(section, "runs", search.runs, 1, 100'000);
  read_count(section, "runs_each", search.runs_each, 1, 100'000);
  read_count(section, "tasks", search.tasks, 10, 1'000'000);
  search.worse_factor = section.number("worse_factor", search.worse_factor, 1, 100);
  return search;
}

ExternalityWeights read_externality(ConfigSection section, ExternalityWeights weights) {
  constexpr double kMost = 1000;
  for (size_t i = 0; i < kExternalityCount; ++i)
    weights[i] = section.number(kExternalityTerms[i].name, weights[i], -kMost, kMost);
  return weights;
}

}  // namespace

Result<TrainingSettings> read_training_settings(const std::filesystem::path& path) {
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  TrainingSettings settings;
  auto section = reader->section("training");
  settings.seed = static_cast<uint64_t>(section.integer("seed", 1, 0, INT64_MAX));
  read_count(section, "episodes", settings.episodes, 1, 1'000'000);
  read_count(section, "tasks", settings.tasks, 10, 1'000'000);
  read_count(section, "trial_interval", settings.trial_interval, 1, 1'000'000);
  read_count(section, "trials", settings.trials, 1, 1000);
  settings.search = read_search(reader->section("search"));
  settings.search.start = read_externality(reader->section("externality"), settings.search.start);
  settings.dqn = read_dqn_settings(reader->section("dqn"));
  if (auto status = reader->finish(); !status) return tl::unexpected(status.error());
  return settings;
}

std::string describe(const TrainingSettings& settings) {
  const DqnSettings& dqn = settings.dqn;
  const SearchSettings& search = settings.search;
  return fmt::format(
      "seed {} generations {} population {} runs {} each {} tasks {} worse {} episodes {} tasks {} "
      "every {} trials {} features {} epsilon {} gamma {} double {} rate {} replay {} start {} "
      "batch {} batches {} tokens {} priority {} start {}{}",
      settings.seed, search.generations, search.population, search.runs, search.runs_each,
      search.tasks, search.worse_factor, settings.episodes, settings.tasks, settings.trial_interval,
      settings.trials, dqn.features, dqn.epsilon, dqn.gamma, dqn.double_dqn, dqn.learning_rate,
      dqn.replay_capacity, dqn.train_start, dqn.batch, dqn.batches_per_experience, dqn.tokens,
      dqn.priority, fmt::join(search.start, " "),
      dqn.return_steps > 1 ? fmt::format(" steps {}", dqn.return_steps) : "");
}

}  // namespace tierpilot::sim
