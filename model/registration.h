// What two programs have to agree on about the size of their messages.
#pragma once

#include <cstddef>

namespace tierpilot {

// In a node's registration, which has to fit a frame; its other replicas follow in updates.
inline constexpr size_t kReplicasInRegistration = 5'000;
// In one update; a node that has no more than that to tell sends fewer.
inline constexpr size_t kEventsInUpdate = 128;

}  // namespace tierpilot
