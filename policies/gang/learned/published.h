// The policy as published: a value network and a policy network with one output for each unit of
// the cluster, which find out by themselves which units fail, from what became of workloads.
// Reconstructed from "Reinforcement-learning based placement system and method for deep-learning
// training jobs" (patent publication, China, 2021).
#pragma once

#include <memory>
#include <vector>

#include "policies/gang/learned/dense_net.h"
#include "policies/gang/placement/placer.h"

namespace tierpilot::gang {

struct PublishedNets {
  PublishedNets(uint32_t units, uint64_t seed);

  uint32_t units;
  DenseNet value;   // 256, 196, 196, 128, 1
  DenseNet policy;  // 256, 196, 196, 128, one for each unit
};

// n, t, then S: what the networks see. n over the units of the cluster, ln(1 + t in hours); a unit
// that is busy or has failed is 1.
std::vector<float> published_state(const std::vector<bool>& free, uint32_t needed, double hours);
// Softmax over the units that are free, by a state; 0 for the others.
std::vector<float> masked_probabilities(std::span<const float> logits,
                                        std::span<const float> state);

// One choice of a unit.
struct PublishedStep {
  std::vector<float> state;
  uint32_t unit = 0;
  std::vector<float> next;  // empty: the workload's last
  float reward = 0;
};

// One unit after the other, each the likeliest of those that are free. `steps`: where they are
// written down; may be null. The cluster must have as many units as the networks.
std::unique_ptr<Placer> make_published_placer(std::shared_ptr<const PublishedNets> nets,
                                              std::vector<PublishedStep>* steps = nullptr);

}  // namespace tierpilot::gang
