// How far a learner has come: part of what it keeps over a restart.
#pragma once

#include <cstdint>

#include "policies/learning/byte_codec.h"

namespace tierpilot {

struct LearnerProgress {
  uint64_t decisions = 0;
  uint64_t experiences = 0;
  uint64_t batches = 0;
  uint64_t weights_version = 1;
  double credit_batches = 0;  // batches that may still be trained on what has come in
  double loss = 0;
};

void put_progress(ByteWriter& out, const LearnerProgress& progress);
// in.ok() is false when it is cut short; figures may be anything then.
LearnerProgress get_progress(ByteReader& in);
bool is_plausible(const LearnerProgress& progress);

}  // namespace tierpilot
