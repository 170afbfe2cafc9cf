// Seeded loss curves in the shape of seven kinds of training, for runs without recorded ones.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sim/quality/curve_files.h"

namespace tierpilot::sim {

// `count` curves of each family: svm, neural-network, logistic-regression, linear-regression,
// boosted-trees, k-means, lda. Rates, floors, noise and lengths are drawn.
std::vector<LossCurve> family_curves(uint64_t seed, uint32_t count);

}  // namespace tierpilot::sim
