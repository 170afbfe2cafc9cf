// What the tests of segments share: blocks with random numbers, running means, changes in place and
// a block within, and their training.
#pragma once

#include <functional>

#include "swap/libtorch/tierpilot_swap_torch_segment.h"
#include "tests/unit/swap_libtorch/scene.h"

namespace tierpilot::swap {

// Every segment is computed again from the second step of a kind on. What may be used of memory
// tells pools apart: each call's is a new one.
inline ScopeSettings all_again() {
  static int mebibytes = 1000;
  return {.budget = kRoom,
          .policy = "checkpoint",
          .tiers = "memory=" + std::to_string(++mebibytes) + "MiB"};
}

inline int64_t counted(const ScopeSettings& settings, const char* name) {
  return statistics_of(settings)[name];
}

inline int64_t recomputed(const ScopeSettings& settings) {
  return counted(settings, "recomputed_segments");
}

constexpr int64_t kFeatures = 64, kBatch = 512;  // twice the least that leaves

struct BlockImpl : torch::nn::Module {
  explicit BlockImpl(bool outer = true)
      : layer(register_module("layer", torch::nn::Linear(kFeatures, kFeatures))),
        norm(register_module("norm", torch::nn::BatchNorm1d(kFeatures))) {
    if (outer) within = register_module("within", std::make_shared<BlockImpl>(false));
  }
  torch::Tensor forward(torch::Tensor x) {
    if (fails) throw std::runtime_error("in the block");
    x = torch::dropout(norm(layer(x)).relu_(), 0.4, is_training());
    return within ? segment(within, x) : x;
  }

  torch::nn::Linear layer;
  torch::nn::BatchNorm1d norm;
  std::shared_ptr<BlockImpl> within;
  bool fails = false;
};
TORCH_MODULE(Block);

struct DeepImpl : torch::nn::Module {
  DeepImpl() {
    for (int i = 0; i < 4; ++i) blocks.push_back(register_module(std::to_string(i), Block()));
  }
  torch::Tensor forward(torch::Tensor x) {
    for (auto& block : blocks) x = segment(block, x);
    return last(x);
  }

  std::vector<Block> blocks;
  torch::nn::Linear last = register_module("last", torch::nn::Linear(kFeatures, 3));
};
TORCH_MODULE(Deep);

inline Deep new_deep() {
  torch::manual_seed(4);
  return Deep();
}

inline Tensors means_of(const torch::nn::Module& module) {
  Tensors all;
  for (const auto& buffer : module.buffers()) all.push_back(buffer.clone());
  return all;
}

inline Tensors gradients_and_means_of(const torch::nn::Module& module) {
  auto all = means_of(module);
  for (const auto& weights : module.parameters()) all.push_back(weights.grad().clone());
  return all;
}

inline torch::Tensor batch_of(int64_t samples, uint64_t seed) {
  auto random = torch::make_generator<torch::CPUGeneratorImpl>(seed);
  return torch::randn({samples, kFeatures}, random);
}

using Forward = std::function<torch::Tensor(torch::Tensor)>;

// Of each step the gradients, the running means and the random numbers that come next. Around each
// forward pass a scope, where there are settings.
inline std::vector<Tensors> steps_of(const std::optional<ScopeSettings>& settings,
                                     torch::nn::Module& module, const Forward& forward,
                                     const std::vector<int64_t>& batches) {
  torch::manual_seed(9);
  std::vector<Tensors> all;
  for (const auto batch : batches) {
    const auto x = batch_of(batch, all.size());
    module.zero_grad();
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (settings) scope.emplace(*settings);
      loss = forward(x).square().mean();
    }
    loss.backward();
    all.push_back(gradients_and_means_of(module));
    all.back().push_back(torch::rand({3}));
  }
  return all;
}

inline std::vector<Tensors> steps_of(
    const std::optional<ScopeSettings>& settings, Deep net,
    const std::vector<int64_t>& batches = std::vector<int64_t>(6, kBatch)) {
  return steps_of(
      settings, *net, [&net](torch::Tensor x) { return net->forward(x); }, batches);
}

}  // namespace tierpilot::swap
