// The network that is being trained, with its optimizer. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "policies/placement/published/q_network.h"

namespace tierpilot {

struct TrainingBatch {
  std::vector<float> observations;  // n times ObservationLayout::kSize
  std::vector<int64_t> actions;     // n slots
  std::vector<float> targets;       // n
};

// Belongs to one thread.
class QTrainee {
 public:
  QTrainee(const PublishedSettings& settings, uint64_t seed);
  ~QTrainee();

  // One optimizer step towards the targets; the loss before it.
  double fit(const TrainingBatch& batch);
  const QNetwork& network() const { return network_; }
  QNetwork& network() { return network_; }

 private:
  struct Optimizer;
  LossForm loss_;
  QNetwork network_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace tierpilot
