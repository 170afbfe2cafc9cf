#include "policies/placement/published/trainer.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "policies/placement/published/exploration.h"
#include "policies/placement/published/slot_permutation.h"

namespace tierpilot {
namespace {

constexpr double kLossMemory = 0.98;
// Below this the rewards are taken as all the same.
constexpr double kMinDeviation = 1e-3;

std::vector<float> next_observations(const std::vector<PublishedExperience>& experiences) {
  std::vector<float> values;
  for (const PublishedExperience& experience : experiences)
    values.insert(values.end(), experience.next->values.begin(), experience.next->values.end());
  return values;
}

bool same_shape(const NetworkSettings& a, const NetworkSettings& b) {
  return std::tie(a.tokens, a.width, a.layers, a.heads, a.feed_forward) ==
         std::tie(b.tokens, b.width, b.layers, b.heads, b.feed_forward);
}

}  // namespace

PublishedTrainer::PublishedTrainer(const PublishedSettings& settings, uint64_t seed)
    : settings_(settings),
      generator_(seed),
      replay_(settings.replay_capacity),
      trainee_(settings, seed) {
  publish_as(1);
}

bool PublishedTrainer::add(PublishedExperience experience) {
  note_range(*experience.seen);
  if (!replay_.add(std::move(experience))) return false;
  const auto most = static_cast<double>(replay_.capacity()) * settings_.batches_per_experience;
  credit_batches_ = std::min(credit_batches_ + settings_.batches_per_experience, most);
  return true;
}

bool PublishedTrainer::ready() const {
  if (settings_.delete_drawn)
    // A step that has begun uses up what it was started with.
    return replay_.size() >= settings_.train_start ||
           (batches_ % settings_.batches_per_step != 0 && replay_.size() >= settings_.batch);
  return replay_.size() >= settings_.train_start && credit_batches_ >= 1;
}

void PublishedTrainer::train_batch() {
  if (batches_ % settings_.batches_per_step == 0) refresh_scale();
  const auto drawn = replay_.draw(settings_.batch, generator_, settings_.delete_drawn);
  const double loss = trainee_.fit(make_batch(drawn));
  loss_ = batches_ == 0 ? loss : kLossMemory * loss_ + (1 - kLossMemory) * loss;
  credit_batches_ = std::max(credit_batches_ - 1, 0.0);
  ++batches_;
}

void PublishedTrainer::refresh_scale() {
  const auto& entries = replay_.entries();
  if (!settings_.normalise_rewards || entries.empty()) return;
  double sum = 0;
  double squares = 0;
  for (const PublishedExperience& entry : entries) {
    sum += entry.reward;
    squares += entry.reward * entry.reward;
  }
  const auto count = static_cast<double>(entries.size());
  scale_.mean = sum / count;
  const double variance = std::max(squares / count - scale_.mean * scale_.mean, 0.0);
  scale_.deviation = std::max(std::sqrt(variance), kMinDeviation);
}

TrainingBatch PublishedTrainer::make_batch(const std::vector<PublishedExperience>& drawn) {
  TrainingBatch batch;
  batch.targets = targets_of(drawn);
  for (const PublishedExperience& experience : drawn) {
    const Observation& seen = *experience.seen;
    SlotPermutation relabel;
    if (settings_.permute_slots && seen.exchangeable)
      relabel = random_permutation(seen.present, generator_);
    relabel.append(seen.values, batch.observations);
    batch.actions.push_back(relabel.slot(experience.action));
  }
  return batch;
}

// reward + gamma * max over the next candidates of the copied network's Q. The next observation
// keeps its labels: the target is a number, whatever the slots are called.
std::vector<float> PublishedTrainer::targets_of(const std::vector<PublishedExperience>& drawn) {
  std::vector<float> targets;
  for (const PublishedExperience& experience : drawn)
    targets.push_back(static_cast<float>(scale_.normalise(experience.reward)));
  if (settings_.gamma == 0) return targets;

  look_up_next_values(drawn);
  std::vector<float> selecting;  // double DQN: the trained network selects, the copied one values
  if (settings_.double_dqn) selecting = trainee_.network().q_values(next_observations(drawn));
  for (size_t i = 0; i < drawn.size(); ++i) {
    const std::vector<float>& values = next_values_.at(drawn[i].next);
    std::span<const float> row = values;
    if (settings_.double_dqn) row = std::span(selecting).subspan(i * kSlots, kSlots);
    const uint32_t slot = greedy_slot(row, drawn[i].next->candidates);
    if (slot < kSlots) targets[i] += static_cast<float>(settings_.gamma) * values[slot];
  }
  return targets;
}

void PublishedTrainer::look_up_next_values(const std::vector<PublishedExperience>& drawn) {
  std::vector<PublishedExperience> missing;
  for (const PublishedExperience& experience : drawn)
    if (next_values_.try_emplace(experience.next).second) missing.push_back(experience);
  if (missing.empty()) return;
  const auto values = published_->network.q_values(next_observations(missing));
  for (size_t i = 0; i < missing.size(); ++i) {
    const auto row = values.begin() + static_cast<std::ptrdiff_t>(i * kSlots);
    next_values_[missing[i].next].assign(row, row + kSlots);
  }
}

std::shared_ptr<const PublishedWeights> PublishedTrainer::publish() {
  publish_as(published_->version + 1);
  return published_;
}

void PublishedTrainer::note_range(const Observation& seen) {
  for (size_t slot = 0; slot < kSlots; ++slot)
    if (seen.present[slot]) seen_.widen(features_of(seen.values, slot));
  ++seen_count_;
}

// Few experiences are no range: after a restart a learner that deletes what it has drawn has few.
void PublishedTrainer::publish_as(uint64_t version) {
  const bool known = batches_ > 0 && seen_count_ >= settings_.train_start;
  published_ = std::make_shared<const PublishedWeights>(
      PublishedWeights{trainee_.network().clone(), version, scale_, known ? seen_ : SlotRange{}});
  published_batches_ = batches_;
  next_values_.clear();
}

void PublishedTrainer::save_to(PublishedCheckpoint& checkpoint) const {
  checkpoint.network = settings_.network;
  checkpoint.weights = trainee_.network().weights();
  checkpoint.experiences.replay.assign(replay_.entries().begin(), replay_.entries().end());
  checkpoint.progress.batches = batches_;
  checkpoint.progress.weights_version = published_->version;
  checkpoint.progress.credit_batches = credit_batches_;
  checkpoint.progress.loss = loss_;
}

Status PublishedTrainer::go_back_to(const PublishedCheckpoint& checkpoint) {
  if (!same_shape(checkpoint.network, settings_.network))
    return fail(ErrorCode::kInvalid, "its network has another shape than the settings ask for");
  if (Status status = trainee_.network().set_weights(checkpoint.weights); !status) return status;
  replay_ = ReplayBuffer<Observation>(settings_.replay_capacity);
  credit_batches_ = 0;
  publish_as(published_->version + 1);
  return {};
}

Status PublishedTrainer::restore(const PublishedCheckpoint& checkpoint) {
  if (!same_shape(checkpoint.network, settings_.network))
    return fail(ErrorCode::kInvalid, "its network has another shape than the settings ask for");
  if (Status status = trainee_.network().set_weights(checkpoint.weights); !status) return status;
  for (const PublishedExperience& experience : checkpoint.experiences.replay) {
    note_range(*experience.seen);
    replay_.add(experience);
  }
  batches_ = checkpoint.progress.batches;
  const auto most = static_cast<double>(replay_.capacity()) * settings_.batches_per_experience;
  credit_batches_ = std::clamp(checkpoint.progress.credit_batches, 0.0, most);
  loss_ = checkpoint.progress.loss;
  refresh_scale();
  // The weights may have been trained further than the version that was last published.
  publish_as(checkpoint.progress.weights_version + 1);
  return {};
}

}  // namespace tierpilot
