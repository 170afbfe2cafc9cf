// The published network for one observation that is one token, by weights that are kept elsewhere.
// libtorch takes up to twice as long for it: its matrix kernels are made for many rows.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tierpilot {

struct DenseWeights {
  const float* matrix = nullptr;  // [out, in]
  const float* offset = nullptr;  // [out]
  size_t in = 0;
  size_t out = 0;
};

struct NormWeights {
  const float* scale = nullptr;
  const float* offset = nullptr;
  float epsilon = 0;
};

// Of a standard encoder layer (post-norm, ReLU). One token attends to itself alone, with weight 1
// whatever its query and key are: only its value is computed.
struct EncoderWeights {
  DenseWeights value, projection, up, down;
  NormWeights norm_attention, norm_feed_forward;
};

struct OneTokenNet {
  DenseWeights embedding;
  std::vector<EncoderWeights> encoder;
  DenseWeights linear, output;

  // `observation`: embedding.in floats. output.out values.
  std::vector<float> values(std::span<const float> observation) const;
  // Of the weights that values() reads, in its order, as fast as memory is read: it cannot take
  // less.
  float sum_read() const;
};

// As fast as memory is read.
float sum_of(std::span<const float> weights);

}  // namespace tierpilot
