// The files of a pool's two tiers.
#pragma once

#include "daemon/memory/pool/tier_store.h"
#include "daemon/memory/pool/types.h"

namespace tierpilot {

enum class PoolTier { kFast, kSlow };

struct PoolTiers {
  // Errors as of TierStore::open().
  static Result<PoolTiers> open(const PoolOptions& options);

  TierStore fast;
  TierStore slow;

  const TierStore& of(PoolTier tier) const { return tier == PoolTier::kFast ? fast : slow; }
  // A replica is in one of them only.
  bool exclusive() const { return slow.options().in_memory; }
};

}  // namespace tierpilot
