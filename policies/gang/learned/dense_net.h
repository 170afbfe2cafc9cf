// A small network of dense layers with rectifiers between them, its gradient and its optimizer:
// in plain loops that compilers vectorise, as no batch here is worth a library's start.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace tierpilot::gang {

class DenseNet {
 public:
  // Widths of the input, of each hidden layer and of the output. He et al., "Delving Deep into
  // Rectifiers" (ICCV 2015), for the first weights; the last layer's are `last_scale` times that.
  DenseNet(std::vector<uint32_t> widths, SeededRandom& random, float last_scale = 1);

  // What a pass through the net leaves for the pass back: the values of each layer, input first.
  struct Pass {
    std::vector<std::vector<float>> values;
    std::span<const float> output() const { return values.back(); }
  };
  // `input` has widths.front() values.
  void forward(std::span<const float> input, Pass& pass) const;
  // Adds to gradients() those of a loss whose gradient by the output is given.
  void backward(const Pass& pass, std::span<const float> by_output);

  const std::vector<uint32_t>& widths() const { return widths_; }
  // By layer: weights of each input value for all outputs, then biases.
  std::span<const float> parameters() const { return parameters_; }
  std::span<float> parameters() { return parameters_; }
  std::span<const float> gradients() const { return gradients_; }

  // One step of Adam (Kingma and Ba, ICLR 2015) against gradients() / `batch`, which is then zero;
  // a gradient longer than `longest` is shortened to that.
  void step(float rate, float batch, float longest = 1);

 private:
  struct Layer {
    uint32_t in, out;
    size_t weights, biases;  // offsets into parameters_
  };
  std::vector<uint32_t> widths_;
  std::vector<Layer> layers_;
  std::vector<float> parameters_, gradients_, mean_, square_;
  std::vector<float> delta_, delta_before_;
  uint64_t steps_ = 0;
};

// In place; the largest logit is subtracted first. Those of -infinity get 0.
void softmax(std::span<float> logits);

}  // namespace tierpilot::gang
