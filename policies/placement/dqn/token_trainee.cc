#include "policies/placement/dqn/token_trainee.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>

#include "policies/learning/blas_kernels.h"

namespace tierpilot {
namespace {

constexpr auto kTraineeWidth = static_cast<int64_t>(TokenNet::kWidth);
constexpr auto kInput = static_cast<int64_t>(kTokenSize);
constexpr double kMaxGradientNorm = 1;

torch::Tensor he_normal(int64_t inputs, int64_t outputs, const at::Generator& generator) {
  const double sigma = std::sqrt(2.0 / static_cast<double>(inputs));
  torch::Tensor weights = torch::empty({inputs, outputs});
  weights.normal_(0, sigma, generator);
  return weights.requires_grad_();
}

torch::Tensor zeros(at::IntArrayRef shape) {
  return torch::zeros(shape).requires_grad_();
}

// Views padded to the same number of tokens.
struct Padded {
  torch::Tensor features;  // [views, tokens, kTokenSize]
  torch::Tensor present;   // [views, tokens, 1], 1 or 0
};

Padded pad(const std::vector<std::shared_ptr<const TokenSet>>& views) {
  size_t most = 0;
  for (const auto& view : views) most = std::max(most, view->count());
  const auto count = static_cast<int64_t>(views.size());
  Padded padded{torch::zeros({count, static_cast<int64_t>(most), kInput}),
                torch::zeros({count, static_cast<int64_t>(most), 1})};
  for (size_t i = 0; i < views.size(); ++i) {
    const auto& features = views[i]->features;
    std::copy(features.begin(), features.end(),
              padded.features.data_ptr<float>() + i * most * kTokenSize);
    std::fill_n(padded.present.data_ptr<float>() + i * most, views[i]->count(), 1.0F);
  }
  return padded;
}

// One wild cost in a batch must not throw the network about.
void clip_gradient(const std::vector<torch::Tensor>& parameters) {
  double squares = 0;
  for (const auto& parameter : parameters)
    squares += parameter.grad().square().sum().item<double>();
  const double norm = std::sqrt(squares);
  if (norm <= kMaxGradientNorm) return;
  for (const auto& parameter : parameters) parameter.grad().mul_(kMaxGradientNorm / norm);
}

}  // namespace

// Matrices by input, as in TokenNet.
struct TokenTrainee::Module {
  Module(double learning_rate, uint64_t seed)
      : parameters(make_parameters(seed)),
        optimizer(parameters, torch::optim::AdamOptions(learning_rate)) {}

  static std::vector<torch::Tensor> make_parameters(uint64_t seed) {
    const at::Generator generator = at::detail::createCPUGenerator(seed);
    return {he_normal(kInput, kTraineeWidth, generator),
            zeros({kTraineeWidth}),
            he_normal(kTraineeWidth, kTraineeWidth, generator),
            he_normal(2 * kTraineeWidth, kTraineeWidth, generator),
            zeros({kTraineeWidth}),
            zeros({kTraineeWidth, 1}),
            zeros({1})};
  }

  torch::Tensor hidden(const Padded& views) const {
    return torch::relu(views.features.matmul(parameters[0]) + parameters[1]) * views.present;
  }
  // C g + b: [views, kWidth]. Hidden values are not negative, so padding is never the maximum.
  torch::Tensor pooled(const torch::Tensor& hidden_tokens, const torch::Tensor& present) const {
    const auto mean = hidden_tokens.sum(1) / present.sum(1);
    return torch::cat({mean, hidden_tokens.amax(1)}, 1).matmul(parameters[3]) + parameters[4];
  }
  torch::Tensor value(const torch::Tensor& token, const torch::Tensor& offset) const {
    const auto last = torch::relu(token.matmul(parameters[2]) + offset);
    return last.matmul(parameters[5]).squeeze(-1) + parameters[6];
  }

  std::vector<torch::Tensor> parameters;
  torch::optim::Adam optimizer;
};

TokenTrainee::TokenTrainee(double learning_rate, uint64_t seed) {
  select_blas_kernels();
  module_ = std::make_unique<Module>(learning_rate, seed);
}

TokenTrainee::~TokenTrainee() = default;

double TokenTrainee::fit(const TokenBatch& batch) {
  const auto count = static_cast<int64_t>(batch.seen.size());
  const Padded views = pad(batch.seen);
  const std::vector<int64_t> chosen(batch.actions.begin(), batch.actions.end());
  const auto actions = torch::tensor(chosen).view({count, 1, 1}).expand({count, 1, kTraineeWidth});
  const auto targets = torch::tensor(batch.targets);

  const auto hidden = module_->hidden(views);
  const auto offset = module_->pooled(hidden, views.present);
  const auto values = module_->value(hidden.gather(1, actions).squeeze(1), offset);
  const auto errors = (values - targets).square();
  const auto loss =
      batch.weights.empty() ? errors.mean() : (errors * torch::tensor(batch.weights)).mean();
  module_->optimizer.zero_grad();
  loss.backward();
  clip_gradient(module_->parameters);
  module_->optimizer.step();
  return loss.item<double>();
}

std::vector<float> TokenTrainee::values(const TokenSet& tokens) const {
  const torch::NoGradGuard no_grad;
  const Padded views = pad({std::make_shared<const TokenSet>(tokens)});
  const auto hidden = module_->hidden(views);
  const auto offset = module_->pooled(hidden, views.present).unsqueeze(1);
  const auto values = module_->value(hidden, offset).contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

std::vector<float> TokenTrainee::weights() const {
  std::vector<float> all;
  all.reserve(TokenNet::weight_count());
  for (const auto& parameter : module_->parameters) {
    const float* values = parameter.data_ptr<float>();
    all.insert(all.end(), values, values + parameter.numel());
  }
  return all;
}

Status TokenTrainee::set_weights(const std::vector<float>& weights) {
  TokenNet fits;
  if (Status status = fits.set_weights(weights); !status) return status;
  const float* from = weights.data();
  for (const auto& parameter : module_->parameters) {
    std::copy_n(from, parameter.numel(), parameter.data_ptr<float>());
    from += parameter.numel();
  }
  return {};
}

}  // namespace tierpilot
