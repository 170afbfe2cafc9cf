#include "daemon/memory/pool/replicas/private_copies.h"

#include "daemon/memory/pool/replicas/staged_version.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

Result<std::vector<ReplicaChange>> PrivateCopies::commit(const std::vector<PrivateCopy>& copies) {
  auto lock = holdings_.lock();
  std::vector<StagedVersion> all;
  all.reserve(copies.size());
  for (const auto& copy : copies) all.emplace_back(holdings_, room_, copy);
  Status status;
  for (size_t i = 0; status && i < all.size(); ++i) status = all[i].stage(lock);
  std::vector<ReplicaChange> published;
  for (size_t i = 0; status && i < all.size(); ++i) {
    status = all[i].publish(lock);
    if (!status) break;
    ++totals_.commits;
    published.push_back(change_of(*holdings_.ledger.find(all[i].id())));
  }
  if (status) return published;
  // Before the bytes are given back, files that could not even be opened must go too.
  without_lock(lock, [&] {
    for (const auto& copy : copies) holdings_.tiers.fast.remove_private(copy.owner, copy.name);
  });
  totals_.discards += copies.size() - published.size();
  return tl::unexpected(status.error());
}

void PrivateCopies::discard(const PrivateCopy& copy) {
  holdings_.tiers.fast.remove_private(copy.owner, copy.name);
  auto lock = holdings_.lock();
  const PrivateCharge given_back(holdings_.ledger, copy.bytes);
  ++totals_.discards;
}

}  // namespace tierpilot
