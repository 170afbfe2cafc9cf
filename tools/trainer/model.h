// The nets that are trained, the data that they learn from, and their gradients. libtorch is
// behind it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/trainer/place.h"

namespace tierpilot::trainer {

// In the order of kModelNames.
enum class ModelKind { kMlp, kConv, kLogistic, kResidual };
// A multi-layer perceptron, a small convolutional net, logistic regression, and a deep
// convolutional net with shortcuts, whose backward pass needs 48 KiB a sample.
inline const std::vector<std::string> kModelNames{"mlp", "conv", "logistic", "residual"};

struct Problem {
  ModelKind model = ModelKind::kMlp;
  uint64_t seed = 1;  // of the data, the first weights and the batches
  uint32_t samples = 1200;
  uint32_t batch = 120;  // of all ranks together
};

class Model {
 public:
  // The same on every rank and in every run. Computes on the calling thread alone from then on.
  explicit Model(const Problem& problem);
  Model(Model&&) noexcept;
  ~Model();

  // All of them, in one piece of memory: what is written to it counts from the next call on.
  std::span<float> weights();
  // This rank's part of the step's batch: its sums over all ranks are the batch's mean gradient,
  // which `gradient` takes, and its mean loss. Batches follow from the step alone.
  float add_up(uint64_t step, const Place& place, std::span<float> gradient);
  // The mean over all samples, looked at by as many at a time as a batch has.
  double loss();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tierpilot::trainer
