#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/types.h>

#include <span>
#include <utility>

#include "policies/placement/networks/one_thread.h"
#include "policies/placement/networks/q_module.h"
#include "policies/placement/published/observation.h"

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

class TorchOptimizer final : public QOptimizer {
 public:
  TorchOptimizer(std::shared_ptr<QModule> module, const PublishedSettings& settings)
      : module_(std::move(module)),
        loss_(settings.loss),
        optimizer_(make_optimizer(settings, *module_)) {}

  double fit(const TrainingBatch& batch) override {
    use_one_thread();
    const auto count = static_cast<int64_t>(batch.actions.size());
    const auto blob = [&](const auto& values, at::IntArrayRef shape, torch::Dtype type) {
      return torch::from_blob(const_cast<void*>(static_cast<const void*>(values.data())), shape,
                              type);
    };
    const auto observations = blob(
        batch.observations, {count, static_cast<int64_t>(ObservationLayout::kSize)}, torch::kFloat);
    const auto actions = blob(batch.actions, {count, 1}, torch::kLong);
    const auto targets = blob(batch.targets, {count}, torch::kFloat);

    module_->train();
    const auto q = module_->forward(observations).gather(1, actions).squeeze(1);
    const auto loss = loss_of(q - targets, loss_);
    optimizer_->zero_grad();
    loss.backward();
    optimizer_->step();
    module_->eval();
    return loss.item<double>();
  }

 private:
  std::shared_ptr<QModule> module_;
  LossForm loss_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
};

size_t count_weights(const torch::nn::Module& module) {
  size_t count = 0;
  for (const auto& parameter : module.parameters()) count += static_cast<size_t>(parameter.numel());
  return count;
}

void move_weights(torch::nn::Module& module, std::span<float> to) {
  for (auto& parameter : module.parameters()) {
    const auto count = static_cast<size_t>(parameter.numel());
    const torch::Tensor moved = torch::from_blob(to.data(), parameter.sizes(), torch::kFloat);
    moved.copy_(parameter.detach());
    parameter.set_data(moved);
    to = to.subspan(count);
  }
}

struct TorchNetwork final : QNetworkImpl {
  explicit TorchNetwork(std::shared_ptr<QModule> made)
      : QNetworkImpl(count_weights(*made)), module(std::move(made)) {
    module->eval();
    move_weights(*module, memory.floats());
    one_token = module->one_token_net();
  }

  std::vector<float> q_values(std::span<const float> observations) const override {
    use_one_thread();
    const c10::InferenceMode inference;
    const auto size = static_cast<int64_t>(ObservationLayout::kSize);
    const auto count = static_cast<int64_t>(observations.size()) / size;
    // from_blob wants a mutable pointer but the module only reads.
    const torch::Tensor input =
        torch::from_blob(const_cast<float*>(observations.data()), {count, size}, torch::kFloat);
    const torch::Tensor q = module->forward(input).contiguous();
    const float* values = q.data_ptr<float>();
    return {values, values + q.numel()};
  }

  std::unique_ptr<QOptimizer> optimizer(const PublishedSettings& settings, uint64_t seed) override {
    auto made = std::make_unique<TorchOptimizer>(module, settings);
    // Dropout draws from torch's global generator, which nothing else here uses.
    torch::manual_seed(seed);
    return made;
  }

  std::shared_ptr<QModule> module;
};

}  // namespace

std::unique_ptr<QNetworkImpl> make_q_network(const NetworkSettings& settings, uint64_t seed) {
  use_one_thread();
  return std::make_unique<TorchNetwork>(std::make_shared<QModule>(settings, seed));
}

}  // namespace tierpilot
