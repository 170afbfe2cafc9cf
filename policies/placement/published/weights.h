// What the published learner hands to the thread that decides.
#pragma once

#include <cstdint>

#include "policies/learning/mailbox.h"
#include "policies/placement/published/q_network.h"
#include "policies/placement/published/slot_features.h"

namespace tierpilot {

// The network learns z with reward = mean + deviation * z.
struct RewardScale {
  double mean = 0;
  double deviation = 1;

  double normalise(double reward) const { return (reward - mean) / deviation; }
  // A discounted sum of rewards from one of normalised rewards.
  double q_in_reward_units(double q, double gamma) const {
    return q * deviation + mean / (1 - gamma);
  }
};

struct PublishedWeights {
  QNetwork network;
  uint64_t version = 1;
  RewardScale scale;
  SlotRange trained_on;  // unknown before it has trained
};

}  // namespace tierpilot
