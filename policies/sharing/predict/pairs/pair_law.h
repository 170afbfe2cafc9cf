// What jobs keep beside each other on one GPU by the law of interference/turns.h, where the part of
// a step on the GPU is not measured.
#pragma once

#include <memory>

#include "policies/sharing/interference/turns.h"
#include "policies/sharing/predict/pairs/gpu_parts.h"

namespace tierpilot::sharing {

// ln of how much longer a step of the victim takes, of the step alone.
double ln_longer(const PairSample& sample, const GpuParts& parts);

// What is kept, by the column that has ln_longer(), with one figure fitted: by what all steps take
// longer still or less so. The median, where the law does not hold in what it is trained on at all.
std::unique_ptr<Regressor> make_pair_law(size_t column);

}  // namespace tierpilot::sharing
