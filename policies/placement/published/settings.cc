#include "policies/placement/published/settings.h"

#include <fmt/format.h>

#include <string>

namespace tierpilot {

PublishedSettings PublishedSettings::published() {
  PublishedSettings settings;
  settings.slow_share = 0;
  settings.epsilon = 0.05;
  settings.gamma = 0.9;
  settings.loss = LossForm::kPublished;
  settings.optimizer = OptimizerKind::kSgd;
  settings.learning_rate = 1e-3;
  settings.normalise_rewards = false;
  settings.permute_slots = false;
  settings.replay_capacity = 1024;
  settings.train_start = 1024;
  settings.batch = 128;
  settings.batches_per_step = 8;
  settings.delete_drawn = true;
  settings.copy_interval = 1024;
  return settings;
}

Status validate(const PublishedSettings& settings) {
  const auto wrong = [](std::string why) {
    return fail(ErrorCode::kInvalid, "dqn-published: " + why);
  };
  const NetworkSettings& network = settings.network;
  if (network.width < 1 || network.layers < 1 || network.heads < 1 || network.feed_forward < 1)
    return wrong("width, layers, heads and feed_forward must be at least 1");
  if (network.width % network.heads != 0)
    return wrong(
        fmt::format("width {} is not a multiple of heads {}", network.width, network.heads));
  if (!(settings.gamma >= 0 && settings.gamma < 1))
    return wrong(fmt::format("gamma {} is not in [0, 1)", settings.gamma));
  if (network.outputs < 1 || network.outputs > static_cast<int64_t>(kSlots))
    return wrong(fmt::format("outputs {} is not between 1 and {}", network.outputs, kSlots));
  if (settings.batch < 1 || settings.batches_per_step < 1)
    return wrong("batch and batches_per_step must be at least 1");
  if (settings.replay_capacity < settings.batch)
    return wrong(fmt::format("replay_capacity {} is below batch {}", settings.replay_capacity,
                             settings.batch));
  if (settings.train_start < settings.batch || settings.train_start > settings.replay_capacity)
    return wrong(fmt::format("train_start {} is not between batch {} and replay_capacity {}",
                             settings.train_start, settings.batch, settings.replay_capacity));
  if (settings.delete_drawn && settings.train_start < settings.batch * settings.batches_per_step)
    return wrong("with delete_drawn, train_start must hold batch x batches_per_step entries");
  return {};
}

}  // namespace tierpilot
