#include "policies/placement/networks/token_module.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "policies/placement/networks/one_thread.h"

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
// False: it is none that could be followed.
bool clip_gradient(const std::vector<torch::Tensor>& parameters) {
  double squares = 0;
  for (const auto& parameter : parameters)
    squares += parameter.grad().square().sum().item<double>();
  const double norm = std::sqrt(squares);
  if (!std::isfinite(norm)) return false;
  if (norm > kMaxGradientNorm)
    for (const auto& parameter : parameters) parameter.grad().mul_(kMaxGradientNorm / norm);
  return true;
}

// Matrices by input, as in TokenNet.
class TorchTokens final : public TokenModule {
 public:
  TorchTokens(double learning_rate, uint64_t seed)
      : parameters_(make_parameters(seed)),
        optimizer_(parameters_, torch::optim::AdamOptions(learning_rate)) {}

  double fit(const TokenBatch& batch) override;
  std::vector<float> values(const TokenSet& tokens) const override;
  std::vector<float> weights() const override;
  void set_weights(std::span<const float> weights) override;

 private:
  static std::vector<torch::Tensor> make_parameters(uint64_t seed);
  torch::Tensor hidden(const Padded& views) const {
    return torch::relu(views.features.matmul(parameters_[0]) + parameters_[1]) * views.present;
  }
  // C g + b: [views, kWidth]. Hidden values are not negative, so padding is never the maximum.
  torch::Tensor pooled(const torch::Tensor& hidden_tokens, const torch::Tensor& present) const {
    const auto mean = hidden_tokens.sum(1) / present.sum(1);
    return torch::cat({mean, hidden_tokens.amax(1)}, 1).matmul(parameters_[3]) + parameters_[4];
  }
  torch::Tensor value(const torch::Tensor& token, const torch::Tensor& offset) const {
    const auto last = torch::relu(token.matmul(parameters_[2]) + offset);
    return last.matmul(parameters_[5]).squeeze(-1) + parameters_[6];
  }

  std::vector<torch::Tensor> parameters_;
  torch::optim::Adam optimizer_;
};

std::vector<torch::Tensor> TorchTokens::make_parameters(uint64_t seed) {
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  return {he_normal(kInput, kTraineeWidth, generator),
          zeros({kTraineeWidth}),
          he_normal(kTraineeWidth, kTraineeWidth, generator),
          he_normal(2 * kTraineeWidth, kTraineeWidth, generator),
          zeros({kTraineeWidth}),
          zeros({kTraineeWidth, 1}),
          zeros({1})};
}

double TorchTokens::fit(const TokenBatch& batch) {
  use_one_thread();
  const auto count = static_cast<int64_t>(batch.seen.size());
  const Padded views = pad(batch.seen);
  const std::vector<int64_t> chosen(batch.actions.begin(), batch.actions.end());
  const auto actions = torch::tensor(chosen).view({count, 1, 1}).expand({count, 1, kTraineeWidth});
  const auto targets = torch::tensor(batch.targets);

  const auto seen = hidden(views);
  const auto offset = pooled(seen, views.present);
  const auto values = value(seen.gather(1, actions).squeeze(1), offset);
  const auto errors = (values - targets).square();
  const auto loss =
      batch.weights.empty() ? errors.mean() : (errors * torch::tensor(batch.weights)).mean();
  optimizer_.zero_grad();
  loss.backward();
  if (clip_gradient(parameters_)) optimizer_.step();
  return loss.item<double>();
}

std::vector<float> TorchTokens::values(const TokenSet& tokens) const {
  use_one_thread();
  const torch::NoGradGuard no_grad;
  const Padded views = pad({std::make_shared<const TokenSet>(tokens)});
  const auto seen = hidden(views);
  const auto offset = pooled(seen, views.present).unsqueeze(1);
  const auto values = value(seen, offset).contiguous();
  return {values.data_ptr<float>(), values.data_ptr<float>() + values.numel()};
}

std::vector<float> TorchTokens::weights() const {
  std::vector<float> all;
  for (const auto& parameter : parameters_) {
    const float* values = parameter.data_ptr<float>();
    all.insert(all.end(), values, values + parameter.numel());
  }
  return all;
}

void TorchTokens::set_weights(std::span<const float> weights) {
  const float* from = weights.data();
  for (const auto& parameter : parameters_) {
    std::copy_n(from, parameter.numel(), parameter.data_ptr<float>());
    from += parameter.numel();
  }
}

}  // namespace

std::unique_ptr<TokenModule> make_token_module(double learning_rate, uint64_t seed) {
  use_one_thread();
  return std::make_unique<TorchTokens>(learning_rate, seed);
}

}  // namespace tierpilot
