// What published pairs keep beside each other on one GPU, by the law of jobs that share a host, too
// (interference/turns.h).
#pragma once

#include <memory>

#include "policies/sharing/interference/turns.h"
#include "policies/sharing/predict/pairs/gpu_parts.h"

namespace tierpilot::sharing {

// ln of how much longer a step of the victim takes, of the step alone. Parts on the GPU are told by
// speeds.
double ln_longer(const PairSample& sample, const GpuParts& parts);

// ln of what the victim keeps, by use as it is measured or told: in thousandths.
double ln_kept_on_shared_host(const PairSample& sample, double victim_milli,
                              double neighbour_milli);

// What is kept, by the column that has ln_longer(), with one figure fitted: by what all steps take
// longer still or less so. The median, where the law does not hold in what it is trained on at all.
std::unique_ptr<Regressor> make_pair_law(size_t column);

}  // namespace tierpilot::sharing
