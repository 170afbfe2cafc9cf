// What the tests of scopes share: a net with convolutions, views, shared storages, changes in place
// and random numbers, and its training.
#pragma once

#include <torch/autograd.h>
#include <torch/nn.h>
#include <torch/optim.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "swap/libtorch/tierpilot_swap_torch.h"

namespace tierpilot::swap {

// Never reached.
inline const std::string kRoom = "64GiB";

// Scopes whose pool no other test has, by what may be used of memory.
inline ScopeSettings everything_leaves(const std::string& tiers) {
  return {.budget = kRoom, .policy = "swap-all", .tiers = tiers};
}

inline nlohmann::json statistics_of(const ScopeSettings& settings) {
  return nlohmann::json::parse(Scope(settings).statistics());
}

// Bytes that its pool holds.
inline int64_t held_bytes(const ScopeSettings& settings) {
  int64_t bytes = 0;
  for (const auto& tier : nlohmann::json::parse(Scope(settings).tiers()))
    bytes += tier["used_bytes"].get<int64_t>();
  return bytes;
}

// Returns when all that was saved in its pool so far has a copy there.
inline void let_copies_end(const ScopeSettings& settings) {
  const auto copied = [&] {
    const auto said = statistics_of(settings);
    return said["copies_out"] == said["saves"];
  };
  while (!copied()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Returns when all that was saved in its pool so far has left.
inline void let_leave(const ScopeSettings& settings) {
  const Scope scope(settings);
  let_copies_end(settings);
  torch::ones({1 << 15}, torch::requires_grad()).exp();  // the library speaks of it at a save
}

// What `work` throws says; empty: nothing is thrown.
template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

struct ResidualImpl : torch::nn::Module {
  explicit ResidualImpl(int64_t width)
      : first(register_module("first", convolution(width))),
        norm(register_module("norm", torch::nn::BatchNorm2d(width))),
        second(register_module("second", convolution(width))) {}
  static torch::nn::Conv2d convolution(int64_t width) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(width, width, 3).padding(1));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    return (second(norm(first(x)).relu_()) + x).relu_();
  }

  torch::nn::Conv2d first;
  torch::nn::BatchNorm2d norm;
  torch::nn::Conv2d second;
};
TORCH_MODULE(Residual);

inline torch::nn::Sequential new_net() {
  namespace nn = torch::nn;
  torch::manual_seed(5);
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(3, 16, 3).padding(1)), Residual(16),
                        nn::MaxPool2d(2), Residual(16), nn::Flatten(), nn::Linear(16 * 64, 32),
                        nn::Tanh(), nn::Dropout(0.2), nn::Linear(32, 10));
}

using Tensors = std::vector<torch::Tensor>;

// Every gradient of a training of so many samples a step; around each forward pass a scope, where
// there are settings.
inline std::vector<Tensors> gradients_of(const std::optional<ScopeSettings>& settings,
                                         const std::vector<int64_t>& batches = {24, 24, 24, 9, 24,
                                                                                24, 9, 24}) {
  auto net = new_net();
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  std::vector<Tensors> all;
  torch::manual_seed(11);
  for (const auto batch : batches) {
    const auto x = torch::randn({batch, 3, 16, 16});
    const auto y = torch::randint(10, {batch}, torch::kLong);
    torch::Tensor loss;
    {
      std::optional<Scope> scope;
      if (settings) scope.emplace(*settings);
      loss = torch::nn::functional::cross_entropy(net->forward(x), y);
    }
    optimizer.zero_grad();
    loss.backward();
    auto& gradients = all.emplace_back();
    for (const auto& weights : net->parameters()) gradients.push_back(weights.grad().clone());
    optimizer.step();
  }
  return all;
}

inline bool same(const std::vector<Tensors>& one, const std::vector<Tensors>& other) {
  return std::ranges::equal(one, other, [](const auto& a, const auto& b) {
    return std::ranges::equal(a, b, [](const auto& x, const auto& y) { return x.equal(y); });
  });
}

}  // namespace tierpilot::swap
