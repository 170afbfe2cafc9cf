// Daemons of other versions, as their registration tells them: what the coordinator makes of it is
// its own code.
#pragma once

#include <capnp/message.h>

#include <memory>
#include <string>

#include "coordinator/core/nodes/registry.h"
#include "rpc/protocol.h"
#include "tests/dst/sharing.h"

namespace tierpilot::dst {

enum class Version { kCurrent, kBeforeGangs, kNewer, kTooNew };
inline constexpr int kVersions = 4;

ProgramVersion program_of(Version version);
bool understands_today(Version version);

using NodeInfo = std::shared_ptr<capnp::MallocMessageBuilder>;
// `predecessors`: daemons of this boot whose tasks are dead.
NodeInfo describe_node(const std::string& name, uint64_t instance,
                       const std::vector<uint64_t>& predecessors, uint32_t units,
                       const SharedUnits& shared_units, uint64_t swap_room_bytes, Version version);
// As the coordinator's service does it: kInvalid of one that it does not understand.
Result<NodeFacts> admit_node(const NodeInfo& info);

}  // namespace tierpilot::dst
