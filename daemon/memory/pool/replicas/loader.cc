#include "daemon/memory/pool/replicas/loader.h"

#include <fmt/format.h>

#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {
namespace {

// What failed at last, after copies here failed for what `before` says.
Status after(Status status, const std::string& before) {
  if (!status && !before.empty()) status.error().message += "; before that " + before;
  return status;
}

}  // namespace

Result<std::unique_ptr<ReadTurn>> ReplicaLoader::fill(const Draft& draft, ServeHow from,
                                                      const ServeItem& item,
                                                      const CancelFlag& cancel, bool& damaged) {
  const DatasetId id = item.id();
  if (from == ServeHow::kFetch)
    return fetch(*remote_, item.sources, id, item.bytes, draft.fd(), cancel);
  const TierStore& store =
      holdings_.tiers.of(from == ServeHow::kHit ? PoolTier::kFast : PoolTier::kSlow);
  const auto source = store.open_replica({id, item.bytes});
  if (!source) return tl::unexpected(source.error());
  const auto what = fmt::format("{}: bringing {} in from {}", holdings_.tiers.fast.name(),
                                describe(id), store.name());
  const auto digest = copy_bytes(source->get(), draft.fd(), item.bytes, what, cancel);
  store.drop_page_cache(source->get());
  if (!digest) return tl::unexpected(digest.error());
  damaged = *digest != id.digest;
  if (damaged) return fail(ErrorCode::kIo, what + ": its bytes are not those of its checksum");
  return std::make_unique<ReadTurn>();
}

std::optional<ServeHow> ReplicaLoader::instead_of(ServeHow how, Holdings::Lock& lock,
                                                  Replica* replica, const ServeItem& item,
                                                  const Error& failed, bool damaged) {
  if (how == ServeHow::kFetch) return std::nullopt;
  const auto tier = how == ServeHow::kHit ? PoolTier::kFast : PoolTier::kSlow;
  if (damaged && !holdings_.lose(lock, *replica, tier)) return std::nullopt;
  const bool unread = failed.code == ErrorCode::kIo || failed.code == ErrorCode::kNotFound;
  if (!damaged && !unread) return std::nullopt;
  if (how == ServeHow::kHit && replica->slow()) return ServeHow::kPromotion;
  if (!damaged && item.sources.empty()) return std::nullopt;  // what failed says it best
  return ServeHow::kFetch;
}

void ReplicaLoader::note_rate(const ServedItem& served) {
  if (served.how == ServeHow::kPromotion) promote_rate_.add(served.bytes, served.transfer_ns);
  if (served.how == ServeHow::kFetch) fetch_rate_.add(served.bytes, served.transfer_ns);
}

Status ReplicaLoader::bring_in(Holdings::Lock& lock, Replica& replica, const ServeItem& item,
                               const CancelFlag& cancel, ServedItem& served) {
  const ReplicaFile file{item.id(), item.bytes};
  const int64_t start_ns = now_ns();
  std::unique_ptr<ReadTurn> turn;
  Status status;
  std::string before;
  std::optional<ServeHow> how = replica.slow() ? ServeHow::kPromotion : ServeHow::kFetch;
  while (how) {
    served.how = *how;
    bool damaged = false;
    status = without_lock(lock, [&, home = replica.home()]() -> Status {
      auto draft = holdings_.tiers.fast.draft(item.bytes);
      if (!draft) return tl::unexpected(draft.error());
      auto filled = fill(*draft, served.how, item, cancel, damaged);
      if (!filled) return tl::unexpected(filled.error());
      turn = std::move(*filled);
      return holdings_.tiers.fast.publish(std::move(*draft), file, home);
    });
    if (status) break;
    status = after(status, before);
    before = status.error().message;
    how = instead_of(served.how, lock, &replica, item, status.error(), damaged);
  }
  if (!status) {
    holdings_.ledger.fast.give(item.bytes);
    return status;
  }
  holdings_.ledger.order.set_fast(replica, true);
  replica.arrived = served.how;
  replica.arrived_ns = served.transfer_ns = now_ns() - start_ns;
  note_rate(served);
  // If the removal fails, the copy in an exclusive slow tier just stays, as in a durable one.
  if (replica.slow() && holdings_.tiers.exclusive()) (void)holdings_.remove_slow(lock, replica);
  holdings_.changed(replica);
  turn->done();
  return {};
}

Result<ServedItem> ReplicaLoader::load(const ServeItem& item, const CancelFlag& cancel,
                                       EvictionTally& tally) {
  const DatasetId id = item.id();
  ServedItem served{.name = item.name,
                    .version = item.version,
                    .path = holdings_.tiers.fast.path_of({id, item.bytes}),
                    .bytes = item.bytes};
  auto lock = holdings_.lock();
  Replica& replica = *holdings_.ledger.find(id);  // pinned, so it stays
  bool joined = false;
  for (; !replica.fast() && replica.busy; holdings_.wait(lock)) {
    if (cancel) return cancelled(describe(id));
    joined = true;
  }
  if (replica.fast()) {
    if (joined) served.how = replica.arrived, served.transfer_ns = replica.arrived_ns;
    return served;
  }

  Holdings::Busy busy(holdings_, id);
  if (auto status = room_.make_fast(lock, item.bytes, cancel, tally); !status)
    return tl::unexpected(status.error());
  if (auto status = bring_in(lock, replica, item, cancel, served); !status)
    return tl::unexpected(status.error());
  return served;
}

Status ReplicaLoader::promote(const DatasetId& id, const CancelFlag& cancel) {
  auto lock = holdings_.lock();
  const auto found = holdings_.wait_idle(lock, id, cancel);
  if (!found) return tl::unexpected(found.error());
  if (!*found || (*found)->doomed || (!(*found)->fast() && !(*found)->slow()))
    return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
  Replica& replica = **found;
  if (replica.fast()) return {};
  if (!holdings_.ledger.fast.fits(replica.bytes))
    return fail(ErrorCode::kExhausted,
                fmt::format("{}: no room for {} that nothing has to leave for",
                            holdings_.tiers.fast.name(), describe(id)));
  Holdings::Busy busy(holdings_, id);
  holdings_.ledger.fast.take(replica.bytes);
  const ServeItem item{
      .name = id.name, .version = id.version, .bytes = replica.bytes, .digest = id.digest};
  ServedItem served{.bytes = replica.bytes};
  replica.arriving = true;
  auto brought = bring_in(lock, replica, item, cancel, served);
  replica.arriving = false;
  return brought;
}

Status ReplicaLoader::copy(Holdings::Lock& lock, const std::string& owner, const ServeItem& item,
                           const CancelFlag& cancel, ServedItem& served) {
  const DatasetId id = item.id();
  // Looked for only now: making room may have evicted the version that is to be copied.
  const auto base = holdings_.wait_idle(lock, id, cancel);
  if (!base) return tl::unexpected(base.error());
  std::optional<Holdings::Busy> busy;
  std::optional<ServeHow> how = ServeHow::kFetch;
  if (*base && ((*base)->fast() || (*base)->slow())) {
    busy.emplace(holdings_, id);
    how = (*base)->fast() ? ServeHow::kHit : ServeHow::kPromotion;
  }
  Status status;
  std::string before;
  while (how) {
    served.how = *how;
    bool damaged = false;
    status = without_lock(lock, [&]() -> Status {
      auto draft = holdings_.tiers.fast.private_copy(owner, item.name, item.bytes);
      if (!draft) return tl::unexpected(draft.error());
      // Nobody else can read this copy: its turn ends without being done.
      if (auto filled = fill(*draft, served.how, item, cancel, damaged); !filled)
        return tl::unexpected(filled.error());
      served.path = draft->path();
      draft->keep();
      return {};
    });
    if (status) break;
    status = after(status, before);
    before = status.error().message;
    how = instead_of(served.how, lock, *base, item, status.error(), damaged);
  }
  return status;
}

Result<ServedItem> ReplicaLoader::copy_for_writing(const std::string& owner, const ServeItem& item,
                                                   const CancelFlag& cancel, EvictionTally& tally) {
  ServedItem served{.name = item.name, .version = item.version, .write = true, .bytes = item.bytes};
  auto lock = holdings_.lock();
  if (auto status = room_.make_fast(lock, item.bytes, cancel, tally); !status)
    return tl::unexpected(status.error());
  const int64_t start_ns = now_ns();
  if (auto status = copy(lock, owner, item, cancel, served); !status) {
    holdings_.ledger.fast.give(item.bytes);
    return tl::unexpected(status.error());
  }
  served.transfer_ns = now_ns() - start_ns;
  note_rate(served);
  return served;
}

}  // namespace tierpilot
