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
  if (status) status = StagedVersion::claim(lock, all);
  std::vector<ReplicaChange> published;
  for (size_t i = 0; status && i < all.size(); ++i) {
    status = all[i].publish(lock);
    if (!status) break;
    ++totals_.commits;
    published.push_back(change_of(*holdings_.ledger.find(all[i].id())));
  }
  // Before the bytes are given back.
  std::vector<Draft> left;
  for (auto& version : all)
    for (auto& file : version.take_files()) left.push_back(std::move(file));
  without_lock(lock, [&] {
    left.clear();
    if (status) return;
    // Those that could not even be opened must go too.
    for (const auto& copy : copies) holdings_.tiers.fast.remove_private(copy.owner, copy.name);
  });
  if (status) return published;
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
