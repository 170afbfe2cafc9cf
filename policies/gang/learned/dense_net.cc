#include "policies/gang/learned/dense_net.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::gang {
namespace {

float normal(SeededRandom& random) {  // Box and Muller
  constexpr double kTwoPi = 6.283185307179586;
  return static_cast<float>(std::sqrt(-2 * std::log1p(-random.unit())) *
                            std::cos(kTwoPi * random.unit()));
}

}  // namespace

DenseNet::DenseNet(std::vector<uint32_t> widths, SeededRandom& random, float last_scale)
    : widths_(std::move(widths)) {
  size_t count = 0;
  for (size_t i = 0; i + 1 < widths_.size(); ++i) {
    const size_t weights = count;
    count += size_t{widths_[i]} * widths_[i + 1];
    layers_.push_back({widths_[i], widths_[i + 1], weights, count});
    count += widths_[i + 1];
  }
  parameters_.resize(count);
  gradients_.resize(count);
  mean_.resize(count);
  square_.resize(count);
  for (const auto& layer : layers_) {
    const bool last = &layer == &layers_.back();
    const float scale = std::sqrt(2.0F / static_cast<float>(layer.in)) * (last ? last_scale : 1);
    for (size_t i = layer.weights; i < layer.biases; ++i) parameters_[i] = scale * normal(random);
  }
}

void DenseNet::forward(std::span<const float> input, Pass& pass) const {
  pass.values.resize(widths_.size());
  pass.values[0].assign(input.begin(), input.end());
  for (size_t at = 0; at < layers_.size(); ++at) {
    const Layer& layer = layers_[at];
    auto& out = pass.values[at + 1];
    const float* bias = &parameters_[layer.biases];
    out.assign(bias, bias + layer.out);
    for (uint32_t i = 0; i < layer.in; ++i) {
      const float value = pass.values[at][i];
      if (value == 0) continue;
      const float* row = &parameters_[layer.weights + size_t{i} * layer.out];
      for (uint32_t o = 0; o < layer.out; ++o) out[o] += value * row[o];
    }
    if (at + 1 < layers_.size())
      for (float& value : out) value = std::max(value, 0.0F);
  }
}

void DenseNet::backward(const Pass& pass, std::span<const float> by_output) {
  delta_.assign(by_output.begin(), by_output.end());
  for (size_t at = layers_.size(); at-- > 0;) {
    const Layer& layer = layers_[at];
    const auto& in = pass.values[at];
    for (uint32_t o = 0; o < layer.out; ++o) gradients_[layer.biases + o] += delta_[o];
    delta_before_.assign(layer.in, 0);
    for (uint32_t i = 0; i < layer.in; ++i) {
      if (in[i] == 0) continue;  // its rectifier passes nothing back either
      const float* row = &parameters_[layer.weights + size_t{i} * layer.out];
      float* by_row = &gradients_[layer.weights + size_t{i} * layer.out];
      float sum = 0;
      for (uint32_t o = 0; o < layer.out; ++o) {
        by_row[o] += in[i] * delta_[o];
        sum += row[o] * delta_[o];
      }
      delta_before_[i] = sum;
    }
    delta_.swap(delta_before_);
  }
}

void DenseNet::step(float rate, float batch, float longest) {
  constexpr float kMean = 0.9F, kSquare = 0.999F, kEpsilon = 1e-7F;
  double length = 0;
  for (const float gradient : gradients_) length += double{gradient} * gradient;
  length = std::sqrt(length) / batch;
  const float scale = (length > longest ? longest / static_cast<float>(length) : 1) / batch;
  ++steps_;
  const auto steps = static_cast<float>(steps_);
  const float unbiased =
      rate * std::sqrt(1 - std::pow(kSquare, steps)) / (1 - std::pow(kMean, steps));
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const float gradient = gradients_[i] * scale;
    mean_[i] = kMean * mean_[i] + (1 - kMean) * gradient;
    square_[i] = kSquare * square_[i] + (1 - kSquare) * gradient * gradient;
    parameters_[i] -= unbiased * mean_[i] / (std::sqrt(square_[i]) + kEpsilon);
    gradients_[i] = 0;
  }
}

void softmax(std::span<float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  float sum = 0;
  for (float& logit : logits) sum += logit = std::exp(logit - most);
  for (float& logit : logits) logit /= sum;
}

}  // namespace tierpilot::gang
