// What a dqn's network was trained on, feature by feature of a token.
#pragma once

#include "policies/dqn/tokens.h"
#include "policies/learning/value_range.h"

namespace tierpilot {

using FeatureRange = ValueRange<kTokenSize>;

}  // namespace tierpilot
