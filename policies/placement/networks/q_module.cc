#include "policies/placement/networks/q_module.h"

#include <ATen/CPUGeneratorImpl.h>

#include <string>

#include "policies/placement/published/observation.h"

namespace tierpilot {
namespace {

using Layout = ObservationLayout;

struct Range {
  int64_t begin;
  int64_t size;
};

std::vector<Range> token_ranges(InputTokens tokens) {
  if (tokens == InputTokens::kWhole) return {{0, Layout::kSize}};
  return {{Layout::kUtilisation, kSlots}, {Layout::kFreeFast, kSlots}, {Layout::kOverlap, kSlots},
          {Layout::kOperations, 1},       {Layout::kDataSize, 1},      {Layout::kWrites, 1}};
}

void fill_gaussian(torch::nn::Module& module, double sigma, const at::Generator& generator) {
  // Layer norms keep their 1 and 0: their weights are one-dimensional.
  for (auto& item : module.named_parameters())
    if (item.value().dim() > 1)
      item.value().normal_(0, sigma, generator);
    else if (item.key().find("bias") != std::string::npos)
      item.value().zero_();
}

DenseWeights dense(const torch::Tensor& matrix, const torch::Tensor& offset) {
  return {matrix.data_ptr<float>(), offset.data_ptr<float>(), static_cast<size_t>(matrix.size(1)),
          static_cast<size_t>(matrix.size(0))};
}

DenseWeights dense(const torch::nn::Linear& linear) {
  return dense(linear->weight, linear->bias);
}

NormWeights norm(const torch::nn::LayerNorm& layer) {
  return {layer->weight.data_ptr<float>(), layer->bias.data_ptr<float>(),
          static_cast<float>(layer->options.eps())};
}

EncoderWeights encoder(const torch::nn::TransformerEncoderLayer& layer) {
  auto& attention = layer->self_attn;
  const int64_t width = attention->in_proj_weight.size(1);
  return {dense(attention->in_proj_weight.narrow(0, 2 * width, width),
                attention->in_proj_bias.narrow(0, 2 * width, width)),
          dense(attention->out_proj->weight, attention->out_proj->bias),
          dense(layer->linear1),
          dense(layer->linear2),
          norm(layer->norm1),
          norm(layer->norm2)};
}

}  // namespace

QModule::QModule(const NetworkSettings& settings, uint64_t seed) {
  namespace nn = torch::nn;
  for (const Range& range : token_ranges(settings.tokens)) {
    embeddings_.emplace_back(range.size, settings.width);
    register_module("embedding" + std::to_string(embeddings_.size()), embeddings_.back());
  }
  const auto layer = nn::TransformerEncoderLayerOptions(settings.width, settings.heads)
                         .dim_feedforward(settings.feed_forward)
                         .dropout(settings.dropout);
  for (int64_t i = 0; i < settings.layers; ++i) {
    encoder_.emplace_back(layer);
    register_module("encoder" + std::to_string(i), encoder_.back());
  }
  linear_ = register_module("linear", nn::Linear(settings.width, settings.width));
  output_ = register_module("output", nn::Linear(settings.width, settings.outputs));

  const torch::NoGradGuard no_grad;
  const at::Generator generator = at::detail::createCPUGenerator(seed);
  fill_gaussian(*this, settings.init_sigma, generator);
  fill_gaussian(*output_, settings.output_sigma, generator);
}

torch::Tensor QModule::tokens(const torch::Tensor& observations) {
  std::vector<torch::Tensor> embedded;
  int64_t begin = 0;
  for (auto& embedding : embeddings_) {
    const int64_t size = embedding->options.in_features();
    embedded.push_back(embedding(observations.narrow(1, begin, size)));
    begin += size;
  }
  return torch::stack(embedded);
}

torch::Tensor QModule::forward(const torch::Tensor& observations) {
  torch::Tensor hidden = tokens(observations);
  for (auto& layer : encoder_) hidden = layer(hidden);
  const torch::Tensor q = output_(torch::relu(linear_(hidden.mean(0))));
  const auto missing = static_cast<int64_t>(kSlots) - q.size(1);
  return missing > 0 ? torch::constant_pad_nd(q, {0, missing}) : q;
}

std::unique_ptr<OneTokenNet> QModule::one_token_net() {
  if (embeddings_.size() != 1) return nullptr;
  auto net = std::make_unique<OneTokenNet>();
  net->embedding = dense(embeddings_.front());
  for (const auto& layer : encoder_) net->encoder.push_back(encoder(layer));
  net->linear = dense(linear_);
  net->output = dense(output_);
  return net;
}

}  // namespace tierpilot
