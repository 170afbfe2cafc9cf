#include "policies/dqn/value_trainer.h"

#include <algorithm>
#include <utility>

namespace tierpilot {
namespace {

constexpr double kLossMemory = 0.98;

}  // namespace

ValueTrainer::ValueTrainer(const DqnSettings& settings, uint64_t seed, Target target)
    : settings_(settings),
      generator_(seed),
      replay_(settings.replay_capacity),
      trainee_(settings.learning_rate, seed),
      target_(std::move(target)) {}

bool ValueTrainer::add(TokenExperience experience) {
  if (!replay_.add(std::move(experience))) return false;
  const auto most = static_cast<double>(replay_.capacity()) * settings_.batches_per_experience;
  credit_batches_ = std::min(credit_batches_ + settings_.batches_per_experience, most);
  return true;
}

void ValueTrainer::restore(std::vector<TokenExperience> replay, double credit_batches) {
  for (TokenExperience& experience : replay) replay_.add(std::move(experience));
  credit_batches_ = credit_batches;
}

bool ValueTrainer::ready() const {
  return replay_.size() >= settings_.train_start && credit_batches_ >= 1;
}

void ValueTrainer::forget() {
  replay_ = ReplayBuffer<TokenSet>(settings_.replay_capacity);
  credit_batches_ = 0;
}

void ValueTrainer::train_batch() {
  TokenBatch batch;
  for (TokenExperience& experience : replay_.draw(settings_.batch, generator_, false)) {
    batch.targets.push_back(target_(experience));
    batch.actions.push_back(experience.action);
    batch.seen.push_back(std::move(experience.seen));
  }
  const double loss = trainee_.fit(batch);
  loss_ = batches_ == 0 ? loss : kLossMemory * loss_ + (1 - kLossMemory) * loss;
  credit_batches_ -= 1;
  ++batches_;
}

}  // namespace tierpilot
