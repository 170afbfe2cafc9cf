#include "daemon/memory/pool/replicas/homes.h"

#include "base/log.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {
namespace {

tl::unexpected<Error> is_to_go(const DatasetId& id) {
  return fail(ErrorCode::kConflict, describe(id) + ": is to be dropped once nobody uses it");
}

}  // namespace

Status HomeReplicas::set_home(const DatasetId& id, bool home, const CancelFlag& cancel) {
  auto lock = holdings_.lock();
  const auto found = holdings_.wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (!*found || (!(*found)->fast() && !(*found)->slow()))
    return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
  Replica& replica = **found;
  if (home && replica.doomed) return is_to_go(id);
  Holdings::Busy busy(holdings_, id);
  if (home && !replica.slow() && !holdings_.tiers.exclusive()) {
    if (auto status = room_.make_slow(lock, replica.bytes); !status) return status;
    if (auto status = room_.write_back(lock, replica, cancel); !status) return status;
  }
  const ReplicaFile file{id, replica.bytes};
  const auto status = without_lock(lock, [&]() -> Status {
    if (auto marked = replica.slow() ? holdings_.tiers.slow.set_home(file, home) : Status();
        !marked)
      return marked;
    return replica.fast() ? holdings_.tiers.fast.set_home(file, home) : Status();
  });
  if (status) holdings_.ledger.order.set_home(replica, home);
  holdings_.changed(replica);
  return status;
}

void HomeReplicas::mend(const DatasetId& id, const CancelFlag& cancel) {
  {
    const auto lock = holdings_.lock();
    const Replica* replica = holdings_.ledger.find(id);
    const bool is_in_memory_only = replica && replica->home() && replica->fast() &&
                                   !replica->slow() && !holdings_.tiers.exclusive();
    if (!is_in_memory_only) return;
  }
  if (const auto written = set_home(id, true, cancel); !written)
    spdlog::error("{}: it is in memory only, and not written to the disk anew: {}", describe(id),
                  written.error().message);
}

Result<ReplicaChange> HomeReplicas::keep(const ServeItem& item, const CancelFlag& cancel) {
  const DatasetId id = item.id();
  auto lock = holdings_.lock();
  const auto found = holdings_.wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (*found && ((*found)->fast() || (*found)->slow())) {
    lock.unlock();
    if (auto kept = set_home(id, true, cancel); !kept) return tl::unexpected(kept.error());
    lock.lock();
    const Replica* replica = holdings_.ledger.find(id);
    if (!replica) return fail(ErrorCode::kConflict, describe(id) + ": was dropped meanwhile");
    return change_of(*replica);
  }
  Replica& replica = holdings_.ledger.entry(id, item.bytes);
  if (replica.doomed) return is_to_go(id);
  Holdings::Busy busy(holdings_, id);
  if (auto status = room_.make_slow(lock, item.bytes); !status)
    return tl::unexpected(status.error());
  std::unique_ptr<ReadTurn> turn;
  const auto status = without_lock(lock, [&]() -> Status {
    auto draft = holdings_.tiers.slow.draft(item.bytes);
    if (!draft) return tl::unexpected(draft.error());
    auto fetched = fetch(*remote_, item.sources, id, item.bytes, draft->fd(), cancel);
    if (!fetched) return tl::unexpected(fetched.error());
    turn = std::move(*fetched);
    return holdings_.tiers.slow.publish(std::move(*draft), {id, item.bytes}, true);
  });
  if (!status) {
    holdings_.ledger.slow.give(item.bytes);
    return tl::unexpected(status.error());
  }
  holdings_.ledger.order.set_slow(replica, true);
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  holdings_.changed(replica);
  turn->done();
  return change_of(replica);
}

}  // namespace tierpilot
