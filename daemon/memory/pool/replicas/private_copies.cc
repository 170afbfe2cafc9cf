#include "daemon/memory/pool/replicas/private_copies.h"

#include "daemon/memory/pool/replicas/staged_version.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

Committed PrivateCopies::commit(const std::vector<PrivateCopy>& copies) {
  auto lock = holdings_.lock();
  std::vector<StagedVersion> all;
  all.reserve(copies.size());
  for (const auto& copy : copies) all.emplace_back(holdings_, room_, copy);
  Status status;
  uint64_t no_room_bytes = 0;
  for (size_t i = 0; status && i < all.size(); ++i) {
    status = all[i].stage(lock);
    if (!status && status.error().code == ErrorCode::kExhausted) no_room_bytes = all[i].bytes();
  }
  if (status) status = StagedVersion::claim(lock, all);
  std::vector<ReplicaChange> published;
  if (status) status = publish(lock, all);
  for (size_t i = 0; status && i < all.size(); ++i) {
    const Replica& replica = *holdings_.ledger.find(all[i].id());
    holdings_.changed(replica);
    published.push_back(change_of(replica));
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
  (status ? totals_.commits : totals_.discards) += copies.size();
  if (status) return published;
  return tl::unexpected(CommitError(status.error(), no_room_bytes));
}

Status PrivateCopies::publish(Holdings::Lock& lock, std::vector<StagedVersion>& all) {
  for (auto each = all.begin(); each != all.end(); ++each)
    if (auto status = each->publish(lock); !status) {
      for (auto done = all.begin(); done <= each; ++done) done->take_back(lock);
      return status;
    }
  return {};
}

void PrivateCopies::discard(const PrivateCopy& copy) {
  holdings_.tiers.fast.remove_private(copy.owner, copy.name);
  auto lock = holdings_.lock();
  const PrivateCharge given_back(holdings_.ledger, copy.bytes);
  ++totals_.discards;
}

}  // namespace tierpilot
