// Whether a task is better kept back than placed: where bringing its data to a node with room costs
// it and all others more than to wait for a node that is full.
#pragma once

#include <cstddef>

#include "policies/interface/values.h"
#include "policies/placement/dqn/externality.h"

namespace tierpilot {

// The full node where the view's task would cost less than on the candidate `chosen`, both by the
// estimate and what it costs others; kNoNode: there is none, or the task may not be held, or has no
// data to be brought, or nothing is known of what it costs others.
size_t worth_waiting_for(const View& view, FeatureMask mask, const ExternalityWeights& others,
                         size_t chosen);

}  // namespace tierpilot
