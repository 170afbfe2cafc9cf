#include "policies/placement/published/q_trainee.h"

namespace tierpilot {

QTrainee::QTrainee(const PublishedSettings& settings, uint64_t seed)
    : network_(settings.network, seed), optimizer_(network_.impl().optimizer(settings, seed)) {}

}  // namespace tierpilot
