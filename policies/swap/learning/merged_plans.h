// What two programs learned, in one.
#pragma once

#include "policies/swap/learning/kept_plans.h"

namespace tierpilot::swap {

// `ours` and what is kept already. Of a step that both know the one stays that was tried more, and
// ours of two that were tried as much, unless it is as another run left it. One that had no room
// stays of neither. Of more than can be restored the last are ours.
KeptPlans merged(KeptPlans ours, KeptPlans theirs);

}  // namespace tierpilot::swap
