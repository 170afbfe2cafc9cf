#include "policies/placement/dqn/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace tierpilot {
namespace {

constexpr std::array<std::string_view, kFeatureGroups> kGroupNames{
    "time", "load", "memory", "locality", "speed", "gpu", "request", "context"};

// ["gpu", "context"]: a mask without these two.
FeatureMask read_mask(ConfigSection& section) {
  FeatureMask mask = kAllFeatures;
  for (const std::string& name : section.texts("leave_out", {})) {
    const auto* group = std::find(kGroupNames.begin(), kGroupNames.end(), name);
    if (group != kGroupNames.end()) {
      mask &= without(static_cast<FeatureGroup>(group - kGroupNames.begin()));
      continue;
    }
    std::string known;
    for (const std::string_view group_name : kGroupNames)
      known.append(known.empty() ? "" : ", ").append(group_name);
    section.complain("leave_out", fmt::format("'{}' is none of: {}", name, known));
  }
  return mask;
}

template <class Int>
void read_count(ConfigSection& section, std::string_view key, int64_t min, int64_t max,
                Int& value) {
  value = static_cast<Int>(section.integer(key, static_cast<int64_t>(value), min, max));
}

}  // namespace

Status validate(const DqnSettings& settings) {
  const auto wrong = [](std::string why) { return fail(ErrorCode::kInvalid, "dqn: " + why); };
  if (!(settings.gamma >= 0 && settings.gamma < 1))
    return wrong(fmt::format("gamma {} is not in [0, 1)", settings.gamma));
  if (settings.return_steps < 1) return wrong("return_steps must be at least 1");
  if (settings.batch < 1) return wrong("batch must be at least 1");
  if (settings.tokens < 2) return wrong("tokens must be at least 2");
  if (settings.train_start < settings.batch || settings.train_start > settings.replay_capacity)
    return wrong(fmt::format("train_start {} is not between batch {} and replay_capacity {}",
                             settings.train_start, settings.batch, settings.replay_capacity));
  return {};
}

DqnSettings read_dqn_settings(ConfigSection section, const std::filesystem::path& weights) {
  DqnSettings settings;
  settings.features = read_mask(section);
  settings.epsilon = section.number("epsilon", settings.epsilon, 0, 1);
  settings.gamma = section.number("gamma", settings.gamma, 0, 0.9999);
  read_count(section, "return_steps", 1, 1024, settings.return_steps);
  settings.double_dqn = section.boolean("double_dqn", settings.double_dqn);
  settings.priority = section.number("priority", settings.priority, 0, 1);
  settings.learning_rate = section.number("learning_rate", settings.learning_rate, 1e-8, 1);
  settings.batches_per_experience =
      section.number("batches_per_experience", settings.batches_per_experience, 0, 1000);
  read_count(section, "replay_capacity", 1, 1 << 20, settings.replay_capacity);
  read_count(section, "train_start", 1, 1 << 20, settings.train_start);
  read_count(section, "batch", 1, 1 << 16, settings.batch);
  read_count(section, "copy_interval", 1, 1 << 30, settings.copy_interval);
  if (section.has("remembered_tokens")) section.complain("remembered_tokens", "is now 'tokens'");
  read_count(section, "tokens", 2, 1024, settings.tokens);
  settings.weights =
      section.text("weights", settings.features == kAllFeatures ? weights.string() : "");
  if (const Status valid = validate(settings); !valid)
    section.complain("train_start", valid.error().message);
  return settings;
}

}  // namespace tierpilot
