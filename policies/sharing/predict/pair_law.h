// What jobs keep beside each other on one GPU that they take in turn, from what is known of each
// alone.
//
// Two jobs that wait for each other at the GPU and at the host, as customers of a closed queueing
// network do: who arrives finds the other there as often as it is there alone (Reiser and
// Lavenberg, Mean-Value Analysis of Closed Multichain Queuing Networks, JACM 27(2), 1980). With the
// part u of a step on the GPU, a step takes u_a u_b + (1 - u_a) (1 - u_b) longer. Units are handed
// over between kernels, so who has the longer ones waits for less: by the fourth root of the ratio
// of the times on the GPU, which was found on a K80 and on a P100 alike.
#pragma once

#include <memory>

#include "policies/sharing/predict/gpu_parts.h"

namespace tierpilot::sharing {

// ln of how much longer a step of the victim takes, of the step alone.
double ln_longer(const PairSample& sample, const GpuParts& parts);

// What is kept, by the column that has ln_longer(), with one figure fitted: by what all steps take
// longer still or less so. The median, where the law does not hold in what it is trained on at all.
std::unique_ptr<Regressor> make_pair_law(size_t column);

}  // namespace tierpilot::sharing
