// What the published learner remembers: fixed observations, slots as actions.
#pragma once

#include "policies/interface/features.h"
#include "policies/learning/pending.h"

namespace tierpilot {

using PublishedExperience = Experience<Observation>;
using PublishedPending = PendingExperience<Observation>;

uint64_t hash_of(const Observation& seen);

}  // namespace tierpilot
