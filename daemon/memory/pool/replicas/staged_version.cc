#include "daemon/memory/pool/replicas/staged_version.h"

#include <fmt/format.h>

namespace tierpilot {

Status StagedVersion::stage(Lock& lock) {
  auto reclaimed =
      without_lock(lock, [&] { return holdings_.tiers.fast.reclaim_private(owner_, id_.name); });
  if (!reclaimed) return tl::unexpected(reclaimed.error());
  fast_file_.emplace(std::move(*reclaimed));
  charge_real_size(lock);
  if (auto status = copy_down(lock); !status) return status;
  const auto found = holdings_.wait_idle(lock, id_, kNeverCancelled);
  if (!found) return tl::unexpected(found.error());
  here_already_ = *found && ((*found)->fast() || (*found)->slow());
  holdings_.ledger.entry(id_, fast_file_->bytes());
  busy_.emplace(holdings_, id_);
  return {};
}

Status StagedVersion::copy_down(Lock& lock) {
  const uint64_t bytes = fast_file_->bytes();
  const bool copies = !holdings_.tiers.exclusive() || !stays_fast_;
  if (copies) {
    if (auto status = room_.make_slow(lock, bytes); !status) return status;
    charge_.add_slow(bytes);
  }
  const auto digest = without_lock(lock, [&]() -> Result<ContentDigest> {
    const auto what = fmt::format("{}: committing {}", holdings_.tiers.slow.name(), describe(id_));
    if (!copies) return digest_file(fast_file_->fd(), bytes, what, kNeverCancelled);
    auto draft = holdings_.tiers.slow.draft(bytes);
    if (!draft) return tl::unexpected(draft.error());
    slow_file_.emplace(std::move(*draft));
    return copy_bytes(fast_file_->fd(), slow_file_->fd(), bytes, what, kNeverCancelled);
  });
  if (!digest) return tl::unexpected(digest.error());
  id_.digest = *digest;
  return {};
}

void StagedVersion::charge_real_size(Lock& lock) {
  const uint64_t bytes = fast_file_->bytes();
  if (bytes <= charge_.fast()) return charge_.set_fast(bytes);
  const uint64_t extra = bytes - charge_.fast();
  stays_fast_ = false;
  if (!holdings_.ledger.can_pin(extra)) return;
  holdings_.ledger.pin_private(extra);
  EvictionTally tally;
  if (room_.make_fast(lock, extra, kNeverCancelled, tally)) {
    charge_.add_fast(extra);
    stays_fast_ = true;
  } else {
    holdings_.ledger.unpin_private(extra);
  }
}

Status StagedVersion::publish(Lock& lock) {
  const ReplicaFile file = replica_file();
  Replica& replica = *holdings_.ledger.find(id_);
  replica.doomed = false;
  if (here_already_) return publish_again(lock, replica);
  if (slow_file_) {
    auto status = without_lock(
        lock, [&] { return holdings_.tiers.slow.publish(std::move(*slow_file_), file, true); });
    if (!status) return status;
    charge_.hand_over_slow();
    holdings_.ledger.order.set_slow(replica, true);
  }
  if (stays_fast_) {
    auto status = without_lock(
        lock, [&] { return holdings_.tiers.fast.publish(std::move(*fast_file_), file, true); });
    if (!status && !replica.slow()) return status;
    if (status) charge_.hand_over_fast();
    holdings_.ledger.order.set_fast(replica, status.has_value());
  }
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  holdings_.changed(replica);
  return {};
}

Status StagedVersion::publish_again(Lock& lock, Replica& replica) {
  const ReplicaFile file = replica_file();
  const auto status = without_lock(lock, [&]() -> Status {
    slow_file_.reset();
    if (auto marked = replica.slow() ? holdings_.tiers.slow.set_home(file, true) : Status();
        !marked)
      return marked;
    return replica.fast() ? holdings_.tiers.fast.set_home(file, true) : Status();
  });
  if (!status) return status;
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  holdings_.changed(replica);
  return {};
}

}  // namespace tierpilot
