// What the published learner remembers: fixed observations, slots as actions.
#pragma once

#include "policies/learning/pending.h"
#include "policies/placement/published/observation.h"

namespace tierpilot {

using PublishedExperience = Experience<Observation>;

uint64_t hash_of(const Observation& seen);

}  // namespace tierpilot
