#include "daemon/memory/pool/replicas/replica_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace tierpilot {

Result<size_t> ReplicaReader::read(const DatasetId& id, uint64_t offset,
                                   std::span<std::byte> into) const {
  UniqueFd fd;
  bool from_slow = false;
  uint64_t bytes = 0;
  {
    auto lock = holdings_.lock();
    const Replica* replica = holdings_.ledger.find(id);
    if (!replica || (!replica->fast() && !replica->slow()))
      return fail(ErrorCode::kNotFound, describe(id) + ": no replica on this node");
    from_slow = !replica->fast();
    bytes = replica->bytes;
    auto opened =
        holdings_.tiers.of(from_slow ? PoolTier::kSlow : PoolTier::kFast).open_replica({id, bytes});
    if (!opened) return tl::unexpected(opened.error());
    fd = std::move(*opened);
  }
  if (offset >= bytes) return 0;
  into = into.first(std::min<uint64_t>(into.size(), bytes - offset));
  auto got = read_at(fd.get(), into, offset, describe(id));
  if (from_slow) holdings_.tiers.slow.drop_page_cache(fd.get());
  if (got && *got < into.size())
    return fail(ErrorCode::kIo, fmt::format("{}: its file ends early", describe(id)));
  return got;
}

std::vector<ReplicaChange> ReplicaReader::replicas() const {
  auto lock = holdings_.lock();
  std::vector<ReplicaChange> out;
  for (const auto& [id, replica] : holdings_.ledger.entries()) {
    if (!replica.fast() && !replica.slow()) continue;
    auto& change = out.emplace_back(change_of(replica));
    // Only damage takes a home from the disk. Who was told of it may have forgotten, or never
    // heard.
    change.damaged =
        change.home && change.in_fast && !change.in_slow && !holdings_.tiers.exclusive();
  }
  return out;
}

PoolUsage ReplicaReader::usage() const {
  auto lock = holdings_.lock();
  PoolUsage usage{.fast_budget_bytes = holdings_.ledger.fast.budget(),
                  .fast_used_bytes = holdings_.ledger.fast.used(),
                  .fast_pinned_bytes = holdings_.ledger.pinned_bytes(),
                  .slow_budget_bytes = holdings_.ledger.slow.budget(),
                  .slow_used_bytes = holdings_.ledger.slow.used()};
  for (const auto& [id, replica] : holdings_.ledger.entries())
    usage.replicas += replica.fast() || replica.slow();
  return usage;
}

}  // namespace tierpilot
