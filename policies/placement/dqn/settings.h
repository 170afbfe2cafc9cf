// Every constant of the dqn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "base/config.h"
#include "base/result.h"
#include "policies/placement/dqn/tokens.h"

namespace tierpilot {

struct DqnSettings {
  FeatureMask features = kAllFeatures;
  // Small, because it starts from a good estimate: on a large cluster a random node costs several
  // times the best one's.
  double epsilon = 0.005;
  // Weight of the next decision's value; 0: a value is the measured cost of its decision alone, and
  // nothing is bootstrapped. Measured against 0.3 and 0.9, and in steps, in
  // docs/results/evaluation.md.
  double gamma = 0;
  // Decisions whose measured costs are summed, by gamma, before the value of what comes after them.
  size_t return_steps = 1;
  bool double_dqn = true;  // the trained network chooses the next node, the copied one values it
  double learning_rate = 1e-3;

  // Priorities by error: of so many times a batch, those with the larger errors are learned from,
  // by the error to this power, and weighed so that the mean stays what it was (Katharopoulos,
  // Fleuret: ICML 2018). 0: plain replay.
  double priority = 0;
  size_t replay_capacity = 16384;
  size_t train_start = 256;  // experiences before the first step
  size_t batch = 128;
  double batches_per_experience = 0.25;
  uint64_t copy_interval = 64;  // decisions between two copies of the weights
  // Candidates that the network values and remembers: of more, those that cost least without it. It
  // is trained on no more, and what it takes for the best of a thousand is mostly its own error.
  size_t tokens = 32;

  std::filesystem::path weights;  // where learning starts from; empty: the estimate alone
};

// kInvalid names the first setting that cannot be.
Status validate(const DqnSettings& settings);

// Reads the keys of a [dqn] table over the defaults; `weights` are those where the key is not given
// and nothing is left out. Wrong values are noted in the section's reader.
DqnSettings read_dqn_settings(ConfigSection section, const std::filesystem::path& weights = {});

}  // namespace tierpilot
