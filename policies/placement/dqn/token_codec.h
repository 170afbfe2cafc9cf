// What a dqn learner keeps over a restart, as bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policies/learning/experience_codec.h"
#include "policies/learning/progress.h"
#include "policies/placement/dqn/feature_range.h"
#include "policies/placement/dqn/tokens.h"

namespace tierpilot {

struct TokenMemory {
  FeatureMask features = kAllFeatures;
  LearnerProgress progress;
  std::vector<float> own;
  ExternalityWeights others = kNoExternality;
  FeatureRange trained_on;
  Experiences<TokenSet> experiences;
};

std::string encode_memory(const TokenMemory& memory);
// kInvalid says what cannot be. Every experience has its sights, and an action that is in them.
Result<TokenMemory> decode_memory(std::string_view bytes);

}  // namespace tierpilot
