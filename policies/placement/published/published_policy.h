// Placement by the Q network: masked epsilon-greedy over the newest copied weights.
#pragma once

#include <memory>

#include "policies/interface/policy.h"
#include "policies/placement/published/settings.h"
#include "policies/placement/published/weights.h"

namespace tierpilot {

// The policy is the reader of `weights`. Where none have arrived, no candidate has a slot below
// kSlots, or the network gives no finite value, fallback_decide chooses and the reason says so.
std::unique_ptr<Policy> make_published_policy(const PublishedSettings& settings, uint64_t seed,
                                              std::shared_ptr<Mailbox<PublishedWeights>> weights);

}  // namespace tierpilot
