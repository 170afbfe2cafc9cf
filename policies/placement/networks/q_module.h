// The torch module behind QNetwork. Costs 10 s to compile: include it in .cc files only.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/transformerlayer.h>

#include <memory>
#include <vector>

#include "policies/placement/published/q_network_impl.h"

namespace tierpilot {

// observation -> token(s) -> `layers` standard encoder layers (post-norm, ReLU) -> linear + ReLU ->
// a value for each output. The publication names the parts; the ReLU and the mean over tokens are
// ours.
struct QModule : torch::nn::Module {
  QModule(const NetworkSettings& settings, uint64_t seed);
  // [batch, ObservationLayout::kSize] -> [batch, kSlots], 0 beyond the outputs
  torch::Tensor forward(const torch::Tensor& observations);
  // The same for one observation, by this module's weights where they are now. Null: an observation
  // is several tokens.
  std::unique_ptr<OneTokenNet> one_token_net();

 private:
  torch::Tensor tokens(const torch::Tensor& observations);  // [tokens, batch, width]

  std::vector<torch::nn::Linear> embeddings_;  // one per token
  std::vector<torch::nn::TransformerEncoderLayer> encoder_;
  torch::nn::Linear linear_{nullptr};
  torch::nn::Linear output_{nullptr};
};

std::unique_ptr<QNetworkImpl> make_q_network(const NetworkSettings& settings, uint64_t seed);

}  // namespace tierpilot
