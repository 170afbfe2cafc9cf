#include "daemon/memory/pool/replicas/holdings.h"

#include "base/log.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

Result<PoolTiers> PoolTiers::open(const PoolOptions& options) {
  auto fast = TierStore::open({.label = "fast tier",
                               .dir = options.fast_dir,
                               .in_memory = true,
                               .numa_node = options.fast_numa_node,
                               .budget_bytes = options.fast_budget_bytes});
  if (!fast) return tl::unexpected(fast.error());
  auto slow = TierStore::open({.label = "slow tier",
                               .dir = options.slow_dir,
                               .in_memory = options.slow_kind == "numa",
                               .numa_node = options.slow_numa_node,
                               .budget_bytes = options.slow_budget_bytes});
  if (!slow) return tl::unexpected(slow.error());
  return PoolTiers{std::move(*fast), std::move(*slow)};
}

ReplicaChange change_of(const Replica& replica) {
  const DatasetId& id = replica.id;
  return {id.name,        id.version,     replica.bytes, replica.fast(),
          replica.slow(), replica.home(), id.digest};
}

Holdings::Holdings(const PoolOptions& options, PoolTiers tiers, OnChange on_change)
    : tiers(std::move(tiers)),
      ledger(options.fast_budget_bytes, options.slow_budget_bytes),
      on_change_(std::move(on_change)) {}

void Holdings::wake() {
  // With the lock, or a transfer that has just looked at its flag would miss it.
  const auto held = lock();
  idle_.notify_all();
}

Result<Replica*> Holdings::wait_idle(Lock& lock, const DatasetId& id, const CancelFlag& cancel) {
  while (true) {
    Replica* replica = ledger.find(id);
    if (!replica || !replica->busy) return replica;
    if (cancel) return cancelled(describe(id));
    idle_.wait(lock);
  }
}

Status Holdings::remove_fast(Lock& lock, Replica& replica) {
  ledger.order.set_fast(replica, false);
  replica.leaving = true;
  const auto status = without_lock(
      lock, [&, file = ReplicaFile{replica.id, replica.bytes}] { return tiers.fast.remove(file); });
  replica.leaving = false;
  ledger.order.set_fast(replica, !status);
  if (status) ledger.fast.give(replica.bytes);
  return status;
}

Status Holdings::remove_slow(Lock& lock, Replica& replica) {
  ledger.order.set_slow(replica, false);
  const auto status = without_lock(
      lock, [&, file = ReplicaFile{replica.id, replica.bytes}] { return tiers.slow.remove(file); });
  ledger.order.set_slow(replica, !status);
  if (status) ledger.slow.give(replica.bytes);
  return status;
}

Status Holdings::lose(Lock& lock, Replica& replica, PoolTier tier) {
  spdlog::error("{}: {}: the bytes here are not those of its checksum {}: the copy is given up",
                tiers.of(tier).name(), describe(replica.id), to_string(replica.id.digest));
  // The last copy may be worth an operator's look. Memory is not kept for that.
  const bool keeps = tier == PoolTier::kSlow && replica.home() && !tiers.slow.options().in_memory;
  Status status;
  if (tier == PoolTier::kFast) {
    status = remove_fast(lock, replica);
  } else if (!keeps) {
    status = remove_slow(lock, replica);
  } else {
    ledger.order.set_slow(replica, false);
    status = without_lock(lock, [&] { return tiers.slow.set_aside({replica.id, replica.bytes}); });
    ledger.order.set_slow(replica, !status);
    if (status) ledger.slow.give(replica.bytes);
  }
  if (!replica.fast() && !replica.slow()) ledger.order.set_home(replica, false);
  auto change = change_of(replica);
  change.damaged = true;
  on_change_(change);
  return status;
}

}  // namespace tierpilot
