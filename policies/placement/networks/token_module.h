// The dqn's network behind TokenTrainee, by libtorch. No torch in this header.
#pragma once

#include <cstdint>
#include <memory>

#include "policies/placement/dqn/token_trainee.h"

namespace tierpilot {

std::unique_ptr<TokenModule> make_token_module(double learning_rate, uint64_t seed);

}  // namespace tierpilot
