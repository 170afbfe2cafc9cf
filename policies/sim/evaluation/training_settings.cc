#include <fmt/format.h>

#include "base/config.h"
#include "policies/sim/evaluation/training.h"

namespace tierpilot::sim {

Result<TrainingSettings> read_training_settings(const std::filesystem::path& path) {
  auto reader = ConfigReader::load(path);
  if (!reader) return tl::unexpected(reader.error());
  TrainingSettings settings;
  auto section = reader->section("training");
  const auto count = [&](std::string_view key, uint32_t& value, int64_t min, int64_t max) {
    value = static_cast<uint32_t>(section.integer(key, value, min, max));
  };
  settings.seed = static_cast<uint64_t>(section.integer("seed", 1, 0, INT64_MAX));
  count("episodes", settings.episodes, 1, 1'000'000);
  count("tasks", settings.tasks, 10, 1'000'000);
  count("imitated_episodes", settings.imitated_episodes, 0, 1'000'000);
  count("futures", settings.futures, 0, 1'000'000);
  count("future_per_unit", settings.future_per_unit, 1, 1000);
  count("trial_interval", settings.trial_interval, 1, 1'000'000);
  count("trials", settings.trials, 1, 1000);
  settings.dqn = read_dqn_settings(reader->section("dqn"));
  if (auto status = reader->finish(); !status) return tl::unexpected(status.error());
  return settings;
}

std::string describe(const TrainingSettings& settings) {
  const DqnSettings& dqn = settings.dqn;
  return fmt::format(
      "seed {} episodes {} tasks {} imitated {} futures {} per_unit {} every {} trials {} features "
      "{} epsilon {} "
      "gamma "
      "{} double {} rate {} replay {} start {} batch {} batches {} remembered {}",
      settings.seed, settings.episodes, settings.tasks, settings.imitated_episodes,
      settings.futures, settings.future_per_unit, settings.trial_interval, settings.trials,
      dqn.features, dqn.epsilon, dqn.gamma, dqn.double_dqn, dqn.learning_rate, dqn.replay_capacity,
      dqn.train_start, dqn.batch, dqn.batches_per_experience, dqn.remembered_tokens);
}

}  // namespace tierpilot::sim
