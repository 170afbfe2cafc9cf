#include "tools/trainer/model.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <torch/nn.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "policies/learning/blas_kernels.h"
#include "swap/libtorch/tierpilot_swap_torch_segment.h"

namespace tierpilot::trainer {
namespace {

namespace nn = torch::nn;
namespace functional = torch::nn::functional;
using torch::Tensor;

constexpr int64_t kFeatures = 20;
constexpr int64_t kSide = 8;   // of an image
constexpr int64_t kWidth = 8;  // channels of a convolution
constexpr int kBlocks = 12;    // with a shortcut each

struct Samples {
  Tensor inputs, targets;
};

// Each kind can be learned: its targets follow from its inputs, where they are not noise.
Samples drawn_samples(const Problem& problem) {
  auto random = at::make_generator<at::CPUGeneratorImpl>(derived_seed(problem.seed, "samples"));
  const int64_t count = problem.samples;
  if (problem.model == ModelKind::kConv || problem.model == ModelKind::kResidual) {
    const Tensor images = torch::randn({count, 1, kSide, kSide}, random);
    const Tensor upper = images.narrow(2, 0, kSide / 2).sum({1, 2, 3});
    return {images, upper.gt(images.sum({1, 2, 3}) - upper).to(torch::kLong)};
  }
  const Tensor inputs = torch::randn({count, kFeatures}, random);
  const double unit = 1 / std::sqrt(static_cast<double>(kFeatures));  // of variance
  const Tensor projected = inputs.matmul(torch::randn({kFeatures, 1}, random)) * unit;
  if (problem.model == ModelKind::kMlp) return {inputs, torch::sin(projected)};
  const Tensor noise = torch::randn({count, 1}, random) * unit;
  return {inputs, (projected + noise).gt(0).to(torch::kFloat)};
}

nn::Conv2d convolution(int64_t from, int64_t to) {
  return nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1));
}

struct ResidualImpl : nn::Module {
  explicit ResidualImpl(int64_t width)
      : inner(register_module("inner", convolution(width, width))) {}
  // Branches count by their number: values would grow with the depth.
  Tensor forward(const Tensor& x) { return x + torch::relu(inner(x)) / kBlocks; }

  nn::Conv2d inner;
};
TORCH_MODULE(Residual);

nn::Sequential residual_net() {
  nn::Sequential net(convolution(1, kWidth));
  for (int block = 0; block < kBlocks; ++block) net->push_back(Residual(kWidth));
  net->push_back(nn::MaxPool2d(2));
  net->push_back(nn::Flatten());
  net->push_back(nn::Linear(kWidth * kSide / 2 * kSide / 2, 2));
  return net;
}

// Its blocks may be computed again in the backward pass, where a Scope says so.
Tensor outputs_of(nn::Sequential& net, Tensor x) {
  for (auto& part : *net)
    x = part.ptr()->as<ResidualImpl>() ? swap::segment(part, x) : part.forward(x);
  return x;
}

nn::Sequential net_of(ModelKind model) {
  switch (model) {
    case ModelKind::kMlp:
      return nn::Sequential(nn::Linear(kFeatures, 64), nn::Tanh(), nn::Linear(64, 1));
    case ModelKind::kConv:
      return nn::Sequential(convolution(1, kWidth), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
                            nn::Linear(kWidth * kSide / 2 * kSide / 2, 2));
    case ModelKind::kResidual:
      return residual_net();
    case ModelKind::kLogistic:
      break;
  }
  return nn::Sequential(nn::Linear(kFeatures, 1));
}

// As torch's layers do it, but not with the generator that the whole process shares.
void draw_weights(nn::Sequential& net, uint64_t seed) {
  auto random = at::make_generator<at::CPUGeneratorImpl>(derived_seed(seed, "weights"));
  const torch::NoGradGuard quiet;
  double bound = 1;
  for (auto& weights : net->parameters()) {  // a bias comes after its layer's weights
    if (weights.dim() > 1)
      bound = 1 / std::sqrt(static_cast<double>(weights.numel() / weights.size(0)));
    weights.uniform_(-bound, bound, random);
  }
}

Tensor summed_loss(ModelKind model, const Tensor& outputs, const Tensor& targets) {
  switch (model) {
    case ModelKind::kMlp:
      return functional::mse_loss(outputs, targets,
                                  functional::MSELossFuncOptions().reduction(torch::kSum));
    case ModelKind::kConv:
    case ModelKind::kResidual:
      return functional::cross_entropy(
          outputs, targets, functional::CrossEntropyFuncOptions().reduction(torch::kSum));
    case ModelKind::kLogistic:
      break;
  }
  return functional::binary_cross_entropy_with_logits(
      outputs, targets,
      functional::BinaryCrossEntropyWithLogitsFuncOptions().reduction(torch::kSum));
}

// Which samples the rank takes: every `world`th of the batch.
Tensor drawn_indices(const Problem& problem, uint64_t step, const Place& place) {
  SeededRandom random(derived_seed(problem.seed + step * 0x9e3779b97f4a7c15, "batch"));
  std::vector<int64_t> mine;
  for (uint32_t i = 0; i < problem.batch; ++i) {
    const auto drawn = static_cast<int64_t>(random.below(problem.samples));
    if (i % place.world == place.rank) mine.push_back(drawn);
  }
  return torch::tensor(mine, torch::kLong);
}

}  // namespace

struct Model::Impl {
  Problem problem;
  Samples samples;
  nn::Sequential net;
  // The net's weights and their gradients are parts of these.
  Tensor weights, gradients;
};

Model::Model(const Problem& problem) {
  select_blas_kernels();
  at::set_num_threads(1);
  impl_ = std::make_unique<Impl>();
  impl_->problem = problem;
  impl_->samples = drawn_samples(problem);
  impl_->net = net_of(problem.model);
  draw_weights(impl_->net, problem.seed);
  const torch::NoGradGuard quiet;
  std::vector<Tensor> flat;
  for (const auto& weights : impl_->net->parameters()) flat.push_back(weights.flatten());
  impl_->weights = torch::cat(flat);
  impl_->gradients = torch::zeros_like(impl_->weights);
  int64_t at = 0;
  for (auto& weights : impl_->net->parameters()) {
    const auto part = [&](const Tensor& all) {
      return all.narrow(0, at, weights.numel()).view(weights.sizes());
    };
    weights.mutable_grad() = part(impl_->gradients);
    weights.set_data(part(impl_->weights));
    at += weights.numel();
  }
}

Model::Model(Model&&) noexcept = default;
Model::~Model() = default;

std::span<float> Model::weights() {
  return {impl_->weights.data_ptr<float>(), static_cast<size_t>(impl_->weights.numel())};
}

float Model::add_up(uint64_t step, const Place& place, std::span<float> gradient) {
  const auto indices = drawn_indices(impl_->problem, step, place);
  impl_->gradients.zero_();
  float loss = 0;
  if (indices.numel() > 0) {
    const auto outputs = outputs_of(impl_->net, impl_->samples.inputs.index_select(0, indices));
    const auto targets = impl_->samples.targets.index_select(0, indices);
    const auto mean = summed_loss(impl_->problem.model, outputs, targets) /
                      static_cast<double>(impl_->problem.batch);
    mean.backward();
    loss = mean.item<float>();
  }
  const float* sums = impl_->gradients.data_ptr<float>();
  std::copy(sums, sums + gradient.size(), gradient.begin());
  return loss;
}

double Model::loss() {
  const torch::NoGradGuard quiet;
  const int64_t samples = impl_->problem.samples, batch = impl_->problem.batch;
  double sum = 0;
  for (int64_t at = 0; at < samples; at += batch) {
    const auto count = std::min(batch, samples - at);
    const auto outputs = outputs_of(impl_->net, impl_->samples.inputs.narrow(0, at, count));
    const auto targets = impl_->samples.targets.narrow(0, at, count);
    sum += summed_loss(impl_->problem.model, outputs, targets).item<double>();
  }
  return sum / static_cast<double>(samples);
}

}  // namespace tierpilot::trainer
