#include "policies/placement/published/q_trainee.h"

#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include "policies/placement/published/observation.h"
#include "policies/placement/published/q_module.h"

namespace tierpilot {
namespace {

// S1 weighs the error of a prediction by C = log(1 + exp(-|error|)).
torch::Tensor loss_of(const torch::Tensor& error, LossForm form) {
  const torch::Tensor distance = error.abs();
  const torch::Tensor criticality = torch::log1p(torch::exp(-distance));
  switch (form) {
    case LossForm::kPublished:
      return (distance * criticality).mean();
    case LossForm::kWeighted:
      return (distance * criticality.detach()).mean();
    case LossForm::kWeightedSquare:
      break;
  }
  return (error.square() / 2 * criticality.detach()).mean();
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const PublishedSettings& settings,
                                                        QModule& module) {
  if (settings.optimizer == OptimizerKind::kSgd)
    return std::make_unique<torch::optim::SGD>(module.parameters(),
                                               torch::optim::SGDOptions(settings.learning_rate));
  return std::make_unique<torch::optim::Adam>(module.parameters(),
                                              torch::optim::AdamOptions(settings.learning_rate));
}

}  // namespace

struct QTrainee::Optimizer {
  std::unique_ptr<torch::optim::Optimizer> torch;
};

QTrainee::QTrainee(const PublishedSettings& settings, uint64_t seed)
    : loss_(settings.loss),
      network_(settings.network, seed),
      optimizer_(std::make_unique<Optimizer>(
          Optimizer{make_optimizer(settings, *network_.impl().module)})) {
  // Dropout draws from torch's global generator, which nothing else here uses.
  torch::manual_seed(seed);
}

QTrainee::~QTrainee() = default;

double QTrainee::fit(const TrainingBatch& batch) {
  const auto count = static_cast<int64_t>(batch.actions.size());
  const auto blob = [&](const auto& values, at::IntArrayRef shape, torch::Dtype type) {
    return torch::from_blob(const_cast<void*>(static_cast<const void*>(values.data())), shape,
                            type);
  };
  const auto observations = blob(
      batch.observations, {count, static_cast<int64_t>(ObservationLayout::kSize)}, torch::kFloat);
  const auto actions = blob(batch.actions, {count, 1}, torch::kLong);
  const auto targets = blob(batch.targets, {count}, torch::kFloat);

  QModule& module = *network_.impl().module;
  module.train();
  const auto q = module.forward(observations).gather(1, actions).squeeze(1);
  const auto loss = loss_of(q - targets, loss_);
  optimizer_->torch->zero_grad();
  loss.backward();
  optimizer_->torch->step();
  module.eval();
  return loss.item<double>();
}

}  // namespace tierpilot
