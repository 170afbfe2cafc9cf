#include "daemon/memory/pool/replicas/staged_version.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"

namespace tierpilot {

Status StagedVersion::stage(Lock& lock) {
  auto reclaimed =
      without_lock(lock, [&] { return holdings_.tiers.fast.reclaim_private(owner_, id_.name); });
  if (!reclaimed) return tl::unexpected(reclaimed.error());
  fast_file_.emplace(std::move(*reclaimed));
  charge_real_size(lock);
  return copy_down(lock);
}

Status StagedVersion::claim(Lock& lock, std::vector<StagedVersion>& all) {
  const auto owned = [](const StagedVersion& each) {
    const auto* replica = each.holdings_.ledger.find(each.id_);
    return replica && replica->busy;
  };
  // All at once: who waits for one and owns another may be waited for.
  for (auto other = all.begin(); other != all.end();
       other = std::find_if(all.begin(), all.end(), owned))
    if (auto idle = other->holdings_.wait_idle(lock, other->id_, kNeverCancelled); !idle)
      return tl::unexpected(idle.error());
  for (auto& each : all) {
    auto& replica = each.holdings_.ledger.entry(each.id_, each.fast_file_->bytes());
    each.earlier_ = {replica.fast(), replica.slow(), replica.home(), replica.doomed};
    each.busy_.emplace(each.holdings_, each.id_);
  }
  return {};
}

std::vector<Draft> StagedVersion::take_files() {
  std::vector<Draft> files;
  for (auto* file : {&fast_file_, &slow_file_})
    if (*file) files.push_back(std::move(**file));
  return files;
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
    auto copied = copy_bytes(fast_file_->fd(), slow_file_->fd(), bytes, what, kNeverCancelled);
    if (!copied) return copied;
    return holdings_.tiers.slow.settle(*slow_file_).map([&] { return *copied; });
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
  Replica& replica = *holdings_.ledger.find(id_);
  replica.doomed = false;
  const bool again = earlier_.fast || earlier_.slow;
  const auto status =
      again ? publish_again(lock, replica)
            : publish_slow(lock, replica).and_then([&] { return publish_fast(lock, replica); });
  if (!status) return status;
  holdings_.ledger.order.set_home(replica, true);
  holdings_.ledger.order.touch(replica);
  return {};
}

void StagedVersion::take_back(Lock& lock) {
  Replica& replica = *holdings_.ledger.find(id_);
  const bool in_books = replica.home() != earlier_.home || replica.slow() != earlier_.slow;
  Status status;
  if (replica.fast() && !earlier_.fast) status = holdings_.remove_fast(lock, replica);
  if (replica.slow() && !earlier_.slow)
    status = holdings_.remove_slow(lock, replica).and_then([&] { return status; });
  if (auto marked = without_lock(lock, [&] { return mark(replica, earlier_.home); }); !marked)
    status = marked;
  if (status) holdings_.ledger.order.set_home(replica, earlier_.home);
  replica.doomed |= earlier_.doomed;
  if (!status)
    spdlog::error("{}: stays though its task's commit failed: {}", describe(id_),
                  status.error().message);
  // Whoever asked meanwhile saw it.
  if (in_books) holdings_.changed(replica);
}

Status StagedVersion::mark(const Replica& replica, bool home) const {
  const ReplicaFile file{id_, replica.bytes};
  const auto& tiers = holdings_.tiers;
  return (replica.slow() ? tiers.slow.set_home(file, home) : Status()).and_then([&] {
    return replica.fast() ? tiers.fast.set_home(file, home) : Status();
  });
}

Status StagedVersion::publish_fast(Lock& lock, Replica& replica) {
  if (!stays_fast_) return {};
  const ReplicaFile file = replica_file();
  auto status = without_lock(
      lock, [&] { return holdings_.tiers.fast.publish(std::move(*fast_file_), file, true); });
  if (!status && !replica.slow()) return status;
  if (status) charge_.hand_over_fast();
  holdings_.ledger.order.set_fast(replica, status.has_value());
  return {};
}

Status StagedVersion::publish_slow(Lock& lock, Replica& replica) {
  if (!slow_file_) return {};
  const ReplicaFile file = replica_file();
  auto status = without_lock(
      lock, [&] { return holdings_.tiers.slow.publish(std::move(*slow_file_), file, true); });
  if (!status) return status;
  charge_.hand_over_slow();
  holdings_.ledger.order.set_slow(replica, true);
  return {};
}

Status StagedVersion::publish_again(Lock& lock, Replica& replica) {
  // Of one that a reader had fetched the bytes may be in memory only.
  if (!replica.slow() && !(replica.fast() && holdings_.tiers.exclusive()))
    if (auto status = publish_slow(lock, replica); !status) return status;
  return without_lock(lock, [&] { return mark(replica, true); });
}

}  // namespace tierpilot
