// A TokenNet that is being trained, with its optimizer. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
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

// As libtorch has it. Belongs to one thread.
class TokenModule {
 public:
  virtual ~TokenModule() = default;
  // One step of Adam towards the targets; the mean squared error before it.
  virtual double fit(const TokenBatch& batch) = 0;
  virtual std::vector<float> values(const TokenSet& tokens) const = 0;
  // As TokenNet lays them out.
  virtual std::vector<float> weights() const = 0;
  virtual void set_weights(std::span<const float> weights) = 0;
};

// Libtorch is loaded with the first batch, or the first values. Belongs to one thread.
class TokenTrainee {
 public:
  // Weights as by He et al. (ICCV 2015), those of the output zero: it starts with the value 0.
  TokenTrainee(double learning_rate, uint64_t seed) : learning_rate_(learning_rate), seed_(seed) {}

  // See TokenModule. std::runtime_error: there is no libtorch.
  double fit(const TokenBatch& batch) { return module().fit(batch); }
  std::vector<float> values(const TokenSet& tokens) const { return module().values(tokens); }
  // All zero before the first batch, unless it began from others: those that it will draw are not
  // known, and have the same values.
  std::vector<float> weights() const { return module_ ? module_->weights() : begins_.weights(); }
  // All zero: those of the constructor, as if it had learned nothing.
  Status set_weights(const std::vector<float>& weights);

 private:
  TokenModule& module() const;

  double learning_rate_;
  uint64_t seed_;
  TokenNet begins_;
  mutable std::unique_ptr<TokenModule> module_;
};

}  // namespace tierpilot
