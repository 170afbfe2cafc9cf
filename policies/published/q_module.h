// The torch module behind QNetwork. Costs 10 s to compile: include it in .cc files only.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformerlayer.h>

#include <vector>

#include "policies/published/settings.h"

namespace tierpilot {

// observation -> token(s) -> `layers` standard encoder layers (post-norm, ReLU) -> linear + ReLU ->
// a value for each output. The publication names the parts; the ReLU and the mean over tokens are
// ours.
struct QModule : torch::nn::Module {
  QModule(const NetworkSettings& settings, uint64_t seed);
  // [batch, ObservationLayout::kSize] -> [batch, kSlots], 0 beyond the outputs
  torch::Tensor forward(const torch::Tensor& observations);

 private:
  torch::Tensor tokens(const torch::Tensor& observations);  // [tokens, batch, width]

  std::vector<torch::nn::Linear> embeddings_;  // one per token
  std::vector<torch::nn::TransformerEncoderLayer> encoder_;
  torch::nn::Linear linear_{nullptr};
  torch::nn::Linear output_{nullptr};
};

struct QNetworkImpl {
  std::shared_ptr<QModule> module;
};

}  // namespace tierpilot
