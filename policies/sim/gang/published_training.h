// How the published policy learns: workload by workload, each placed by it and also at random
// several times; what it was better by is the reward of all its choices.
#pragma once

#include <deque>

#include "policies/gang/learned/published.h"
#include "policies/sim/gang/gang_simulation.h"

namespace tierpilot::gang {

struct PublishedSettings {
  uint32_t random_placements = 10;  // k: the best of so many counts
  // The batch of a training: as many steps, drawn at random, as the last workload brought; or all
  // that are kept.
  enum class Batch : uint8_t { kAsProduced, kAll } batch = Batch::kAsProduced;
  // The makespans that are compared come from the simulator under the estimated failure rates, with
  // the same failures for all: a real cluster cannot run a workload twice.
  bool estimated = false;
  size_t kept = 4096;     // steps; the oldest fall out
  float discount = 0.9F;  // unpublished, as is the rate
  float rate = 1e-4F;
  uint64_t seed = 1;
};

// What is kept of past choices.
class IntervalReplay {
 public:
  explicit IntervalReplay(size_t most) : most_(most) {}
  void add(std::vector<PublishedStep> steps);
  // With replacement for kAsProduced.
  std::vector<const PublishedStep*> draw(PublishedSettings::Batch batch,
                                         SeededRandom& random) const;
  size_t size() const { return steps_.size(); }

 private:
  size_t most_;
  size_t produced_ = 0;  // by the last workload
  std::deque<PublishedStep> steps_;
};

class PublishedTrainer {
 public:
  PublishedTrainer(uint32_t units, const PublishedSettings& settings);

  struct Workload {
    double makespan_h = 0;
    double random_h = 0;  // the least of the random placements
    double reward = 0;    // (random_h - makespan_h) / random_h
    size_t steps = 0;
  };
  // Places the scene's jobs, and trains once.
  Workload learn(GangScene scene);

  std::shared_ptr<const PublishedNets> nets() const { return nets_; }

 private:
  void train(const std::vector<const PublishedStep*>& batch);

  PublishedSettings settings_;
  std::shared_ptr<PublishedNets> nets_;
  IntervalReplay replay_;
  SeededRandom random_;
};

}  // namespace tierpilot::gang
