// What a dqn's network was trained on, feature by feature of a token.
#pragma once

#include "policies/learning/value_range.h"
#include "policies/placement/dqn/tokens.h"

namespace tierpilot {

using FeatureRange = ValueRange<kTokenSize>;

}  // namespace tierpilot
