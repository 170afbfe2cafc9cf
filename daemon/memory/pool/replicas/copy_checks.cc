#include "daemon/memory/pool/replicas/copy_checks.h"

#include <fmt/format.h>

#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {
namespace {

// That it could not be looked at for want of descriptors, memory or rights says nothing of it.
bool speaks_against_it(const Error& error) {
  return error.code == ErrorCode::kIo || error.code == ErrorCode::kNotFound;
}

}  // namespace

Result<CopyState> CopyChecks::check_copy(Holdings::Lock& lock, Replica& replica, PoolTier tier,
                                         const CancelFlag& cancel) {
  const DatasetId& id = replica.id;
  const TierStore& store = holdings_.tiers.of(tier);
  if (!(tier == PoolTier::kFast ? replica.fast() : replica.slow())) return CopyState::kAbsent;
  const auto digest = without_lock(lock, [&]() -> Result<ContentDigest> {
    const auto fd = store.open_replica({id, replica.bytes});
    if (!fd) return tl::unexpected(fd.error());
    // What the page cache still has says nothing about the disk.
    store.drop_page_cache(fd->get());
    auto read = digest_file(fd->get(), replica.bytes,
                            fmt::format("{}: checking {}", store.name(), describe(id)), cancel);
    store.drop_page_cache(fd->get());
    return read;
  });
  if (!digest && (cancel || !speaks_against_it(digest.error())))
    return tl::unexpected(digest.error());
  if (digest && *digest == id.digest) return CopyState::kGood;
  // A file that cannot be read is as lost as one with other bytes.
  if (auto status = holdings_.lose(lock, replica, tier); !status)
    return tl::unexpected(status.error());
  return CopyState::kDamaged;
}

Result<ReplicaCheck> CopyChecks::verify(const DatasetId& id, const CancelFlag& cancel) {
  auto lock = holdings_.lock();
  const auto found = holdings_.wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (!*found || (!(*found)->fast() && !(*found)->slow()))
    return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
  Replica& replica = **found;
  Holdings::Busy busy(holdings_, id);
  ReplicaCheck check;
  for (const auto& [tier, state] :
       {std::pair(PoolTier::kFast, &check.fast), std::pair(PoolTier::kSlow, &check.slow)}) {
    const auto checked = check_copy(lock, replica, tier, cancel);
    if (!checked) return tl::unexpected(checked.error());
    *state = *checked;
  }
  return check;
}

}  // namespace tierpilot
