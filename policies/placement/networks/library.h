// The library of networks that are trained (libtierpilot-networks.so). It is loaded when the first
// one is made: libtorch takes longer to load than all else that a coordinator or tierctl does at
// its start, and many never train.
#pragma once

#include <cstdint>
#include <memory>

#include "policies/placement/dqn/token_trainee.h"
#include "policies/placement/published/q_network_impl.h"

namespace tierpilot {

// What the library exports, as `tierpilot_networks`.
struct NetworkLibrary {
  const char* version;  // of Tierpilot: that of its user, or it is not used
  std::unique_ptr<TokenModule> (*token_module)(double learning_rate, uint64_t seed);
  std::unique_ptr<QNetworkImpl> (*q_network)(const NetworkSettings& settings, uint64_t seed);
};

// From any thread. std::runtime_error: it cannot be loaded; the next call tries again.
const NetworkLibrary& network_library();

}  // namespace tierpilot
