// The network that is being trained, with its optimizer. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>

#include "policies/placement/published/q_network.h"
#include "policies/placement/published/q_network_impl.h"

namespace tierpilot {

// Belongs to one thread.
class QTrainee {
 public:
  QTrainee(const PublishedSettings& settings, uint64_t seed);

  // One optimizer step towards the targets; the loss before it.
  double fit(const TrainingBatch& batch) { return optimizer_->fit(batch); }
  const QNetwork& network() const { return network_; }
  QNetwork& network() { return network_; }

 private:
  QNetwork network_;
  std::unique_ptr<QOptimizer> optimizer_;
};

}  // namespace tierpilot
