// Every constant of the S1 learner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/config.h"
#include "base/result.h"
#include "policies/placement/published/observation.h"

namespace tierpilot {

// The publication does not say how the six features enter the encoder. Both arrangements learned
// equally well on the stand-in cluster (bench_policy_learning); six tokens cost six times as much.
enum class InputTokens {
  kWhole,       // one token: the whole observation through one linear layer
  kPerFeature,  // six tokens: each feature (u, c, o, f, s, t) through a linear layer of its own
};

enum class LossForm {
  // |e| log(1 + exp(-|e|)) with e the error, gradient through all of it. Falls again beyond
  // |e| = 1.1: large errors are pushed further away.
  kPublished,
  // The same value, but log(1 + exp(-|e|)) is a weight without gradient.
  kWeighted,
  // e^2 / 2 under that weight: learns the mean, where |e| learns the median.
  kWeightedSquare,
};

enum class OptimizerKind { kSgd, kAdam };

struct NetworkSettings {
  InputTokens tokens = InputTokens::kWhole;
  int64_t width = 512;
  int64_t layers = 2;
  int64_t heads = 4;
  int64_t feed_forward = 2048;
  int64_t outputs = kSlots;  // at most that; nodes whose slot has no output get no tasks
  double dropout = 0.25;
  double init_sigma = 0.02;    // of the Gaussian that all weights start from
  double output_sigma = 0.02;  // the same for the output layer

  bool operator==(const NetworkSettings&) const = default;
};

struct PublishedSettings {
  NetworkSettings network;
  double slow_share = FeatureSettings{}.slow_share;

  double epsilon = 0.05;
  // Published: 0.9. With few batches the bootstrap values are still noise: on the stand-in cluster
  // (bench_policy_learning), 400 batches at the published width, 0.5 ended 1 % above 0.9 in four
  // runs of four; at width 128 the two were equal within noise.
  double gamma = 0.5;
  bool double_dqn = false;
  // With the published loss, plain SGD and every sample used once, the same runs ended at half
  // of random's reward: the network hardly moves, and its start sends every task to one node.
  LossForm loss = LossForm::kWeighted;
  OptimizerKind optimizer = OptimizerKind::kAdam;
  double learning_rate = 1e-4;
  // Rewards are centred and scaled by their running mean and deviation before they are learned.
  bool normalise_rewards = true;
  // Nodes that are all alike are exchangeable: relabelling an experience's slots gives another true
  // experience. Gained 1 % of reward at the published width in four runs of four,
  // nothing at width 128.
  bool permute_slots = true;

  size_t replay_capacity = 1024;
  size_t train_start = 128;  // experiences before the first step
  size_t batch = 128;
  size_t batches_per_step = 8;
  bool delete_drawn = false;
  // What may be trained per new experience, so that an idle cluster's learner idles too. Not used
  // with delete_drawn, which limits itself.
  // A batch of the published network costs 50 to 80 ms of a core; 0.25 and 1 learn about as well.
  double batches_per_experience = 0.5;
  uint64_t copy_interval = 64;  // decisions between two copies of the weights

  FeatureSettings features() const {
    return {.slow_share = slow_share, .slots = static_cast<size_t>(network.outputs)};
  }
  // The values of the publication. What it leaves open (learning rate, sigma) is as in the defaults
  // where that works with SGD.
  static PublishedSettings published();
};

// kInvalid names the first setting that cannot be.
Status validate(const PublishedSettings& settings);

// Reads the keys of a [dqn-published] table over the defaults; `preset = "published"` starts from
// published(). Wrong values are noted in the section's reader.
PublishedSettings read_published_settings(ConfigSection section);

}  // namespace tierpilot
