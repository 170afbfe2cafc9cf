// The replicas of one node: brings them into the fast tier, makes room, commits writes. All methods
// are thread-safe; those that say so block on I/O with the lock released and belong on a worker
// thread.
#pragma once

#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/memory/pool/copy.h"
#include "daemon/memory/pool/counters.h"
#include "daemon/memory/pool/remote.h"
#include "daemon/memory/pool/replicas/doomed_replicas.h"
#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/pool_room.h"
#include "daemon/memory/pool/types.h"

namespace tierpilot {

// A writer's own copy of a dataset, in the fast tier.
struct PrivateCopy {
  std::string owner;
  std::string name;
  uint64_t version = 0;  // that it was copied from
  uint64_t bytes = 0;    // when it was made: what it is charged with
};

struct NewContent;  // in create.cc

class ReplicaManager {
 public:
  using OnChange = Holdings::OnChange;
  static Result<std::unique_ptr<ReplicaManager>> open(const PoolOptions& options,
                                                      std::shared_ptr<RemoteSource> remote,
                                                      OnChange on_change);

  // kExhausted if the items could not even be served on an empty node.
  Status check_fits(const std::vector<ServeItem>& items) const;
  // Pins all items, or none if their room is pinned by others (false). Never blocks.
  Result<bool> admit(const std::vector<ServeItem>& items);
  void unpin(const ServeItem& item);

  // Block. Serve one admitted item; `service_ns` is left to the caller.
  Result<ServedItem> load(const ServeItem& item, const CancelFlag& cancel, EvictionTally& tally);
  Result<ServedItem> copy_for_writing(const std::string& owner, const ServeItem& item,
                                      const CancelFlag& cancel, EvictionTally& tally);
  // Blocks. Turns the copies into the next version of their datasets, all of them or none (but for
  // a failing rename), with this node as their home. Older versions stay until they are dropped:
  // the new one does not count before the coordinator has it on disk. The copies are gone
  // afterwards, whatever the result.
  Result<std::vector<ReplicaChange>> commit(const std::vector<PrivateCopy>& copies);
  // Blocks. Removes a private copy.
  void discard(const PrivateCopy& copy);
  // Blocks. Version 1 of a new dataset, in the slow tier.
  Result<ReplicaChange> create(const std::string& name, const CreateSource& source,
                               const CancelFlag& cancel);
  // Blocks. A home replica of a durable slow tier is written there first.
  Status set_home(const DatasetId& id, bool home, const CancelFlag& cancel);
  // Blocks. A home replica of what other nodes have, or of what is here.
  Result<ReplicaChange> keep(const ServeItem& item, const CancelFlag& cancel);
  // Blocks. Reads what is here and compares; what is damaged goes. kNotFound: nothing is here.
  Result<ReplicaCheck> verify(const DatasetId& id, const CancelFlag& cancel);
  // Blocks shortly. An open file survives eviction, so the bytes are right whatever happens.
  Result<size_t> read(const DatasetId& id, uint64_t offset, std::span<std::byte> into);

  std::vector<ReplicaChange> replicas() const;
  PoolUsage usage() const;
  MovementTotals totals() const;
  void wake() { holdings_.wake(); }

 private:
  using Lock = Holdings::Lock;
  struct Staged;

  ReplicaManager(const PoolOptions& options, PoolTiers tiers, std::shared_ptr<RemoteSource> remote,
                 OnChange on_change);
  Status rescan();
  void adopt(const std::vector<FoundReplica>& found, PoolTier tier);
  Status check_item(const ServeItem& item);

  // Fills a draft in the fast tier from the fast tier (hit), the slow one or another node.
  // The turn by which it came, if it is from there. `damaged`: that copy has other bytes.
  Result<std::unique_ptr<ReadTurn>> fill(const Draft& draft, ServeHow from, const ServeItem& item,
                                         const CancelFlag& cancel, bool& damaged);
  // Of one tier's copy, which goes if it is damaged.
  Result<CopyState> check_copy(Lock& lock, const DatasetId& id, Replica& replica, PoolTier tier,
                               const CancelFlag& cancel);
  void note_rate(const ServedItem& served);

  // Readies a private copy: all that can run out of room happens here.
  Status stage(Lock& lock, const std::string& owner, Staged& staged);
  // A copy that outgrew the fast tier's room does not stay there.
  void charge_real_size(Lock& lock, Staged& staged);
  // To the slow tier, where it goes there; and what its bytes are.
  Status copy_down(Lock& lock, Staged& staged);
  Status publish(Lock& lock, Staged& staged);
  Status publish_again(Lock& lock, Staged& staged, Replica& replica);

  // `making_` has the name.
  Result<ReplicaChange> make_slow(Lock& lock, const std::string& name, const NewContent& content,
                                  const CancelFlag& cancel);

  Holdings holdings_;

 public:
  PoolRoom room;
  DoomedReplicas doomed;

 private:
  const std::shared_ptr<RemoteSource> remote_;
  // Under the lock of the holdings:
  std::set<std::string> making_;  // new datasets, whose digest is not known yet
  CommitTotals commits_;
  RateMeter promote_rate_, fetch_rate_;
};

}  // namespace tierpilot
