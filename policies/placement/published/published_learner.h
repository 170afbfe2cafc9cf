// The learner behind `dqn-published`.
#pragma once

#include <cstdint>
#include <memory>

#include "policies/learning/learner.h"
#include "policies/learning/mailbox.h"
#include "policies/placement/published/settings.h"
#include "policies/placement/published/weights.h"

namespace tierpilot {

// Writes to `mailbox`, from the start.
std::unique_ptr<Learner> make_published_learner(const PublishedSettings& settings, uint64_t seed,
                                                size_t pending_capacity,
                                                std::shared_ptr<Mailbox<PublishedWeights>> mailbox);

}  // namespace tierpilot
