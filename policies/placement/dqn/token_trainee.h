// A TokenNet that is being trained, with its optimizer. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "policies/placement/dqn/token_net.h"
#include "policies/placement/dqn/tokens.h"

namespace tierpilot {

struct TokenBatch {
  std::vector<std::shared_ptr<const TokenSet>> seen;
  std::vector<uint32_t> actions;  // index of a token
  std::vector<float> targets;     // for the value of that token
  std::vector<float> weights;     // of each one's squared error; none: all 1
};

// Belongs to one thread.
class TokenTrainee {
 public:
  // Weights as by He et al. (ICCV 2015), those of the output zero: it starts with the value 0.
  TokenTrainee(double learning_rate, uint64_t seed);
  ~TokenTrainee();

  // One step of Adam towards the targets; the mean squared error before it.
  double fit(const TokenBatch& batch);
  // By libtorch, as in training.
  std::vector<float> values(const TokenSet& tokens) const;
  // As TokenNet lays them out.
  std::vector<float> weights() const;
  Status set_weights(const std::vector<float>& weights);

 private:
  struct Module;
  std::unique_ptr<Module> module_;
};

}  // namespace tierpilot
