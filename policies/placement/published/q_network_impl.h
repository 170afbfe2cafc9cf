// What is behind QNetwork: weights, and libtorch's module over them. No torch in this header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "policies/placement/published/one_token_net.h"
#include "policies/placement/published/settings.h"
#include "policies/placement/published/weight_memory.h"

namespace tierpilot {

struct TrainingBatch {
  std::vector<float> observations;  // n times ObservationLayout::kSize
  std::vector<int64_t> actions;     // n slots
  std::vector<float> targets;       // n
};

class QOptimizer {
 public:
  virtual ~QOptimizer() = default;
  // One step towards the targets; the loss before it.
  virtual double fit(const TrainingBatch& batch) = 0;
};

struct QNetworkImpl {
  explicit QNetworkImpl(size_t weight_count) : memory(weight_count) {}
  virtual ~QNetworkImpl() = default;

  // As QNetwork::q_values_by_torch().
  virtual std::vector<float> q_values(std::span<const float> observations) const = 0;
  // Trains this network, which outlives it.
  virtual std::unique_ptr<QOptimizer> optimizer(const PublishedSettings& settings,
                                                uint64_t seed) = 0;

  WeightMemory memory;  // what the module's parameters are parts of, in their order
  std::unique_ptr<OneTokenNet> one_token;  // null: an observation is several tokens
};

}  // namespace tierpilot
