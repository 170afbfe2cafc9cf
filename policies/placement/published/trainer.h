// Learning from experiences, away from every decision.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <unordered_map>
#include <vector>

#include "policies/placement/published/checkpoint.h"
#include "policies/placement/published/experience.h"
#include "policies/placement/published/q_trainee.h"
#include "policies/placement/published/weights.h"

namespace tierpilot {

// Belongs to the training thread.
class PublishedTrainer {
 public:
  PublishedTrainer(const PublishedSettings& settings, uint64_t seed);

  // False for a duplicate.
  bool add(PublishedExperience experience);
  // Enough experiences, and some of them not used up yet.
  bool ready() const;
  // One of the batches of a training step; only when ready(). Call it again for the next one: what
  // must not wait for a whole step can be done in between.
  void train_batch();
  // Copies the weights for deciding, and for the bootstrap targets of what is trained from now on.
  std::shared_ptr<const PublishedWeights> publish();

  std::shared_ptr<const PublishedWeights> published() const { return published_; }
  bool changed() const { return batches_ != published_batches_; }
  const ReplayBuffer<Observation>& replay() const { return replay_; }
  uint64_t batches() const { return batches_; }
  uint64_t steps() const { return batches_ / settings_.batches_per_step; }
  // Exponentially weighted over the last 50 or so batches.
  double loss() const { return loss_; }

  // Writes its part of a checkpoint: network, weights, replay and training progress.
  void save_to(PublishedCheckpoint& checkpoint) const;
  // Takes over what save_to() wrote. kInvalid, and nothing changes, when the network differs.
  Status restore(const PublishedCheckpoint& checkpoint);
  // Its weights alone; the experiences are forgotten.
  Status go_back_to(const PublishedCheckpoint& checkpoint);

 private:
  TrainingBatch make_batch(const std::vector<PublishedExperience>& drawn);
  std::vector<float> targets_of(const std::vector<PublishedExperience>& drawn);
  void look_up_next_values(const std::vector<PublishedExperience>& drawn);
  void refresh_scale();
  void publish_as(uint64_t version);
  void note_range(const Observation& seen);

  PublishedSettings settings_;
  std::mt19937_64 generator_;
  ReplayBuffer<Observation> replay_;
  QTrainee trainee_;
  RewardScale scale_;
  SlotRange seen_;         // of all experiences, or of those that a checkpoint had
  size_t seen_count_ = 0;  // so many of them
  std::shared_ptr<const PublishedWeights> published_;
  uint64_t published_batches_ = 0;
  // Q values by the published network, which stay the same until the next publish(). The keys keep
  // their observations alive, so that an address cannot come back as another one's.
  std::unordered_map<std::shared_ptr<const Observation>, std::vector<float>> next_values_;
  uint64_t batches_ = 0;
  double credit_batches_ = 0;
  double loss_ = 0;
};

}  // namespace tierpilot
