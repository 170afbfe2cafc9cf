#include "policies/learning/progress.h"

#include <cmath>

namespace tierpilot {

void put_progress(ByteWriter& out, const LearnerProgress& progress) {
  out.put(progress.decisions);
  out.put(progress.experiences);
  out.put(progress.batches);
  out.put(progress.weights_version);
  out.put(progress.credit_batches);
  out.put(progress.loss);
}

LearnerProgress get_progress(ByteReader& in) {
  LearnerProgress progress;
  progress.decisions = in.get<uint64_t>();
  progress.experiences = in.get<uint64_t>();
  progress.batches = in.get<uint64_t>();
  progress.weights_version = in.get<uint64_t>();
  progress.credit_batches = in.get<double>();
  progress.loss = in.get<double>();
  return progress;
}

bool is_plausible(const LearnerProgress& progress) {
  return std::isfinite(progress.credit_batches) && std::isfinite(progress.loss);
}

}  // namespace tierpilot
