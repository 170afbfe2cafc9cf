// Which checkpoint of a job its next try begins from, or waits for, and which are no longer needed.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/core/cluster_state.h"
#include "model/checkpoint_name.h"

namespace tierpilot {

// All that have been found of the task, the oldest first.
std::vector<CheckpointName> checkpoints_of(const Catalog& catalog, uint64_t task);
// The newest that a try of the task could begin from now: some node that can be asked holds it.
// Empty: none.
std::string newest_checkpoint(const ClusterState& state, uint64_t task);
// Why a try of the task is not to begin yet: a newer one than it could begin from now is on its way
// to the disk, or with a node that may be back before its lease ends. Empty: it may begin.
std::string awaited_checkpoint(const ClusterState& state, uint64_t task);
// The newest that has been found, and the newest that is on as many nodes as are to keep it.
std::optional<CheckpointName> last_checkpoint(const ClusterState& state, uint64_t task);
std::optional<CheckpointName> last_safe_checkpoint(const ClusterState& state, uint64_t task);
// Of these, the oldest first, which are no longer needed: the newest safe one stays, the one that
// is next to become safe, the newest, and as many of the newest others as `most` allows.
std::vector<CheckpointName> surplus_checkpoints(const std::vector<CheckpointName>& all,
                                                const std::set<CheckpointName>& safe, size_t most);

// Some node that can be asked holds it.
bool can_be_had(const ClusterState& state, const Catalog::Entry& entry);
// On as many nodes as are to keep it.
bool is_safe(const Catalog::Entry& entry);
// A node that was there before a restart and has not told what it has, for a lease's time; empty:
// none.
std::string awaited_node(const ClusterState& state);

}  // namespace tierpilot
