#include "daemon/memory/pool/replicas/rescan.h"

#include "base/log.h"

namespace tierpilot {
namespace {

void adopt(Holdings& holdings, const std::vector<FoundReplica>& found, PoolTier tier) {
  const TierStore& store = holdings.tiers.of(tier);
  for (const auto& [file, home, modified_ns] : found) {
    Replica& replica = holdings.ledger.entry(file.id, file.bytes);
    // A crash in the middle of a move leaves both copies; and one version has one size.
    const bool surplus =
        (tier == PoolTier::kFast && replica.slow() && holdings.tiers.exclusive()) ||
        (tier == PoolTier::kSlow && replica.slow()) || replica.bytes != file.bytes;
    if (surplus) {
      spdlog::warn("{}: a second copy of {} is removed", store.name(), describe(file.id));
      if (auto status = store.remove(file); !status) spdlog::error("{}", status.error().message);
      continue;
    }
    if (tier == PoolTier::kFast)
      holdings.ledger.order.set_fast(replica, true);
    else
      holdings.ledger.order.set_slow(replica, true);
    (tier == PoolTier::kFast ? holdings.ledger.fast : holdings.ledger.slow).take(file.bytes);
    holdings.ledger.order.set_home(replica, replica.home() || home);
    holdings.ledger.order.touch(replica);
  }
}

}  // namespace

Status rescan(Holdings& holdings, PoolRoom& room) {
  const auto slow = holdings.tiers.slow.scan();
  if (!slow) return tl::unexpected(slow.error());
  const auto fast = holdings.tiers.fast.scan();
  if (!fast) return tl::unexpected(fast.error());
  adopt(holdings, *slow, PoolTier::kSlow);
  adopt(holdings, *fast, PoolTier::kFast);

  auto lock = holdings.lock();
  EvictionTally tally;
  // Budgets may be smaller than they were. What cannot leave stays, and nothing new comes in.
  for (const auto& status :
       {room.make_slow(lock, 0), room.make_fast(lock, 0, kNeverCancelled, tally)})
    if (!status) spdlog::warn("starting over budget: {}", status.error().message);
  return {};
}

}  // namespace tierpilot
