#include "daemon/agent/job_channel/fresh_checkpoints.h"

#include "base/log.h"

namespace tierpilot::agent {

FreshCheckpoints::FreshCheckpoints(Pool& pool)
    : pool_(pool), self_(std::make_shared<FreshCheckpoints*>(this)) {
  for (const auto& replica : pool.replicas()) {
    const auto name = parse_checkpoint_name(replica.name);
    if (!name) continue;
    auto& newest = newest_[name->task];
    if (newest.name < *name) newest = {*name, replica.id()};
  }
}

void FreshCheckpoints::promote(const DatasetId& id) {
  pool_.promote(id, [id](const Status& promoted) {
    if (!promoted) spdlog::debug("{}: {}", id.name, promoted.error().message);
  });
}

void FreshCheckpoints::replace(const DatasetId& old, const DatasetId& fresh) {
  // First the room, then who needs it.
  pool_.demote(old, [weak = std::weak_ptr(self_), old, fresh](const Status& demoted) {
    // One that is in use goes as any other when room is needed.
    if (!demoted) spdlog::debug("{}: {}", old.name, demoted.error().message);
    if (const auto self = weak.lock()) (*self)->promote(fresh);
  });
}

void FreshCheckpoints::changed(const ReplicaChange& change) {
  const auto name = parse_checkpoint_name(change.name);
  if (!name) return;
  const auto known = newest_.find(name->task);
  if (!change.in_fast && !change.in_slow) {
    if (known != newest_.end() && known->second.name == *name) newest_.erase(known);
    return;
  }
  // Promoted once only: what had to leave for others does not push its way back.
  if (known != newest_.end() && *name <= known->second.name) return;
  if (known == newest_.end())
    promote(change.id());
  else
    replace(known->second.id, change.id());
  newest_[name->task] = {*name, change.id()};
}

}  // namespace tierpilot::agent
