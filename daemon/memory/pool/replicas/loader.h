// Brings datasets into the fast tier, for those that were admitted. Knows how fast they came.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "daemon/memory/pool/counters.h"
#include "daemon/memory/pool/remote.h"
#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/pool_room.h"

namespace tierpilot {

class ReplicaLoader {
 public:
  ReplicaLoader(Holdings& holdings, PoolRoom& room, std::shared_ptr<RemoteSource> remote)
      : holdings_(holdings), room_(room), remote_(std::move(remote)) {}

  // Block. Serve one admitted item; `service_ns` is left to the caller.
  Result<ServedItem> load(const ServeItem& item, const CancelFlag& cancel, EvictionTally& tally);
  // Blocks. As Pool::promote().
  Status promote(const DatasetId& id, const CancelFlag& cancel);
  // As `owner`'s own copy. Looks for what is to be copied only when there is room.
  Result<ServedItem> copy_for_writing(const std::string& owner, const ServeItem& item,
                                      const CancelFlag& cancel, EvictionTally& tally);
  // With the lock held.
  ArrivalRates rates() const { return {promote_rate_.rate(), fetch_rate_.rate()}; }

 private:
  // Into room that is taken already and given back after an error; the entry is the caller's.
  // Sets how it came, and how long that took.
  Status bring_in(Holdings::Lock& lock, Replica& replica, const ServeItem& item,
                  const CancelFlag& cancel, ServedItem& served);
  // Into such room, for `owner` alone. Sets the path and how it came.
  Status copy(Holdings::Lock& lock, const std::string& owner, const ServeItem& item,
              const CancelFlag& cancel, ServedItem& served);
  // Fills a draft in the fast tier from the fast tier (hit), the slow one or another node.
  // The turn by which it came, if it is from there. `damaged`: that copy has other bytes.
  Result<std::unique_ptr<ReadTurn>> fill(const Draft& draft, ServeHow from, const ServeItem& item,
                                         const CancelFlag& cancel, bool& damaged);
  // From where it may be had after it `failed` from `how`; none: from nowhere else. A copy here
  // that has other bytes goes; one that could not be read stays, as the disk may do better later.
  std::optional<ServeHow> instead_of(ServeHow how, Holdings::Lock& lock, Replica* replica,
                                     const ServeItem& item, const Error& failed, bool damaged);
  void note_rate(const ServedItem& served);

  Holdings& holdings_;
  PoolRoom& room_;
  const std::shared_ptr<RemoteSource> remote_;
  RateMeter promote_rate_, fetch_rate_;  // under the lock of the holdings
};

}  // namespace tierpilot
