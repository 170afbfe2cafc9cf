// The network of the dqn, computed by hand: batch 1 and small, where a library's calls cost more
// than the arithmetic.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.h"

namespace tierpilot {

// DeepSets (Zaheer et al., NeurIPS 2017) with one value per element:
//   h = relu(A x + a)                                  each token, shared weights
//   g = mean and maximum of h over the tokens
//   value = c . relu(B h + C g + b) + d                each token
// So the value of a token depends on the others, and not on their order or number.
class TokenNet {
 public:
  static constexpr size_t kWidth = 64;

  // All weights zero: every value is zero.
  TokenNet();
  static size_t weight_count();

  // Layout: A [kTokenSize][kWidth], a, B [kWidth][kWidth], C [2 kWidth][kWidth], b, c, d; matrices
  // by input, so that the outputs lie side by side.
  const std::vector<float>& weights() const { return weights_; }
  // kInvalid when the count differs or a weight is not finite; then nothing changes.
  Status set_weights(std::vector<float> weights);

  // What a call works in; keeps its memory.
  struct Scratch {
    std::vector<float> hidden;
  };
  // Its last layer is zero: it adds nothing, and takes no time for it.
  bool blank() const { return blank_; }
  // Adds the value of each token to `values`; `features` has kTokenSize floats for each of them.
  // May run in several threads at once, each with its own scratch.
  void add_values(std::span<const float> features, std::span<float> values, Scratch& scratch) const;

 private:
  std::vector<float> weights_;
  bool blank_ = true;
};

}  // namespace tierpilot
