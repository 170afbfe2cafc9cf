#include "policies/placement/published/settings.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

namespace tierpilot {
namespace {

template <class Enum, size_t N>
using Names = std::array<std::pair<std::string_view, Enum>, N>;

constexpr Names<InputTokens, 2> kTokens{
    {{"whole", InputTokens::kWhole}, {"per-feature", InputTokens::kPerFeature}}};
constexpr Names<LossForm, 3> kLosses{{{"published", LossForm::kPublished},
                                      {"weighted", LossForm::kWeighted},
                                      {"weighted-square", LossForm::kWeightedSquare}}};
constexpr Names<OptimizerKind, 2> kOptimizers{
    {{"sgd", OptimizerKind::kSgd}, {"adam", OptimizerKind::kAdam}}};

template <class Enum, size_t N>
void read_choice(ConfigSection& section, std::string_view key, const Names<Enum, N>& names,
                 Enum& value) {
  if (!section.has(key)) return;
  const std::string text = section.text(key, "");
  std::string known;
  for (const auto& [name, choice] : names) {
    if (name == text) {
      value = choice;
      return;
    }
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name);
  }
  section.complain(key, fmt::format("'{}' is none of: {}", text, known));
}

template <class Int>
void read_count(ConfigSection& section, std::string_view key, int64_t min, int64_t max,
                Int& value) {
  value = static_cast<Int>(section.integer(key, static_cast<int64_t>(value), min, max));
}

void read_network(ConfigSection& section, NetworkSettings& network) {
  read_choice(section, "tokens", kTokens, network.tokens);
  read_count(section, "width", 8, 4096, network.width);
  read_count(section, "layers", 1, 16, network.layers);
  read_count(section, "heads", 1, 64, network.heads);
  read_count(section, "feed_forward", 8, 16384, network.feed_forward);
  read_count(section, "outputs", 1, kSlots, network.outputs);
  network.dropout = section.number("dropout", network.dropout, 0, 0.9);
  network.init_sigma = section.number("init_sigma", network.init_sigma, 1e-6, 1);
  network.output_sigma = section.number("output_sigma", network.output_sigma, 0, 1);
}

}  // namespace

PublishedSettings read_published_settings(ConfigSection section) {
  PublishedSettings settings;
  const std::string preset = section.text("preset", "default");
  if (preset == "published") settings = PublishedSettings::published();
  if (preset != "published" && preset != "default")
    section.complain("preset", fmt::format("'{}' is none of: default, published", preset));

  read_network(section, settings.network);
  read_choice(section, "loss", kLosses, settings.loss);
  read_choice(section, "optimizer", kOptimizers, settings.optimizer);
  settings.slow_share = section.number("slow_share", settings.slow_share, 0, 1);
  settings.epsilon = section.number("epsilon", settings.epsilon, 0, 1);
  settings.gamma = section.number("gamma", settings.gamma, 0, 0.9999);
  settings.learning_rate = section.number("learning_rate", settings.learning_rate, 1e-8, 1);
  settings.batches_per_experience =
      section.number("batches_per_experience", settings.batches_per_experience, 0, 1000);
  settings.double_dqn = section.boolean("double_dqn", settings.double_dqn);
  settings.normalise_rewards = section.boolean("normalise_rewards", settings.normalise_rewards);
  settings.permute_slots = section.boolean("permute_slots", settings.permute_slots);
  settings.delete_drawn = section.boolean("delete_drawn", settings.delete_drawn);
  read_count(section, "replay_capacity", 1, 1 << 20, settings.replay_capacity);
  read_count(section, "train_start", 1, 1 << 20, settings.train_start);
  read_count(section, "batch", 1, 1 << 16, settings.batch);
  read_count(section, "batches_per_step", 1, 1024, settings.batches_per_step);
  read_count(section, "copy_interval", 1, 1 << 30, settings.copy_interval);
  if (const Status valid = validate(settings); !valid)
    section.complain("preset", valid.error().message);
  return settings;
}

}  // namespace tierpilot
