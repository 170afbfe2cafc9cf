#include "daemon/memory/pool/replicas/replica_manager.h"

#include "daemon/memory/pool/replicas/rescan.h"

namespace tierpilot {

ReplicaManager::ReplicaManager(const PoolOptions& options, PoolTiers tiers,
                               const std::shared_ptr<RemoteSource>& remote,
                               Holdings::OnChange on_change)
    : holdings(options, std::move(tiers), std::move(on_change)),
      room(holdings),
      admission(holdings),
      loader(holdings, room, remote),
      private_copies(holdings, room),
      new_datasets(holdings, room),
      homes(holdings, room, remote),
      checks(holdings),
      doomed(holdings),
      reader(holdings) {}

Result<std::unique_ptr<ReplicaManager>> ReplicaManager::open(
    const PoolOptions& options, const std::shared_ptr<RemoteSource>& remote,
    Holdings::OnChange on_change) {
  auto tiers = PoolTiers::open(options);
  if (!tiers) return tl::unexpected(tiers.error());
  auto manager =
      std::make_unique<ReplicaManager>(options, std::move(*tiers), remote, std::move(on_change));
  if (auto status = rescan(manager->holdings, manager->room); !status)
    return tl::unexpected(status.error());
  return manager;
}

MovementTotals ReplicaManager::totals() const {
  auto lock = holdings.lock();
  return {room.totals(), private_copies.totals(), loader.rates()};
}

}  // namespace tierpilot
