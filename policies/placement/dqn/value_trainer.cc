#include "policies/placement/dqn/value_trainer.h"

#include <algorithm>
#include <cmath>
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
  const auto most = static_cast<double>(replay_.capacity()) * settings_.batches_per_experience;
  credit_batches_ = std::clamp(credit_batches, 0.0, most);
}

bool ValueTrainer::ready() const {
  return replay_.size() >= settings_.train_start && credit_batches_ >= 1;
}

void ValueTrainer::forget() {
  replay_ = ReplayBuffer<TokenSet>(settings_.replay_capacity);
  credit_batches_ = 0;
}

std::vector<TokenExperience> ValueTrainer::draw_by_error(std::vector<float>& weights) {
  constexpr size_t kDrawn = 4;
  constexpr double kLeast = 1e-3;  // an error that is no more has its chance too
  auto drawn = replay_.draw(kDrawn * settings_.batch, generator_, false);
  // A diverged network keeps its last finite weights.
  (void)net_.set_weights(trainee_.weights());
  std::vector<double> priorities;
  double sum = 0;
  std::vector<float> values;
  for (const TokenExperience& experience : drawn) {
    values.assign(experience.seen->count(), 0);
    net_.add_values(experience.seen->features, values, scratch_);
    const double error = std::abs(values[experience.action] - target_(experience));
    priorities.push_back(std::pow(error + kLeast, settings_.priority));
    sum += priorities.back();
  }
  std::discrete_distribution<size_t> pick(priorities.begin(), priorities.end());
  std::vector<TokenExperience> chosen;
  for (size_t i = 0; i < settings_.batch; ++i) {
    const size_t at = pick(generator_);
    chosen.push_back(drawn[at]);
    weights.push_back(
        static_cast<float>(sum / (static_cast<double>(drawn.size()) * priorities[at])));
  }
  return chosen;
}

void ValueTrainer::train_batch() {
  TokenBatch batch;
  auto drawn = settings_.priority > 0 ? draw_by_error(batch.weights)
                                      : replay_.draw(settings_.batch, generator_, false);
  for (TokenExperience& experience : drawn) {
    batch.targets.push_back(target_(experience));
    batch.actions.push_back(experience.action);
    batch.seen.push_back(std::move(experience.seen));
  }
  const double loss = trainee_.fit(batch);
  if (std::isfinite(loss))
    loss_ = batches_ == 0 ? loss : kLossMemory * loss_ + (1 - kLossMemory) * loss;
  credit_batches_ -= 1;
  ++batches_;
}

}  // namespace tierpilot
