// A private copy on its way to become the next version of its dataset.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/memory/pool/replicas/holdings.h"
#include "daemon/memory/pool/replicas/pool_room.h"
#include "daemon/memory/pool/replicas/private_copy.h"
#include "daemon/memory/pool/replicas/transfer.h"

namespace tierpilot {

// Made and destroyed with the lock held. What was not published is gone afterwards.
class StagedVersion {
 public:
  using Lock = Holdings::Lock;

  StagedVersion(Holdings& holdings, PoolRoom& room, const PrivateCopy& copy)
      : holdings_(holdings),
        room_(room),
        owner_(copy.owner),
        id_{copy.name, copy.version + 1},
        charge_(holdings.ledger, copy.bytes) {}

  // Blocks. All that can run out of room happens here.
  Status stage(Lock& lock);
  // Blocks. Once all are staged, as whoever waits for room must own none: owns their entries.
  static Status claim(Lock& lock, std::vector<StagedVersion>& all);
  // Blocks. Once it is claimed: makes this node its home. Nobody is told yet.
  Status publish(Lock& lock);
  // Blocks. After a publish() that failed, or another one's: all is as it was when it was claimed.
  void take_back(Lock& lock);
  // Files that were not published. To be closed without the lock: large ones take their time.
  std::vector<Draft> take_files();
  // As they were written; 0: it could not even be opened.
  uint64_t bytes() const { return fast_file_ ? fast_file_->bytes() : 0; }
  // Its digest is known once it is staged.
  const DatasetId& id() const { return id_; }

 private:
  struct Earlier {
    bool fast = false, slow = false, home = false, doomed = false;
  };

  // A copy that outgrew the fast tier's room does not stay there.
  void charge_real_size(Lock& lock);
  // To the slow tier, where it goes there; and what its bytes are.
  Status copy_down(Lock& lock);
  Status publish_slow(Lock& lock, Replica& replica);
  Status publish_fast(Lock& lock, Replica& replica);
  Status publish_again(Lock& lock, Replica& replica);
  // Blocks. Its files, as a home's or not.
  Status mark(const Replica& replica, bool home) const;
  ReplicaFile replica_file() const { return {id_, fast_file_->bytes()}; }

  Holdings& holdings_;
  PoolRoom& room_;
  std::string owner_;
  // In this order: a file vanishes before its bytes are given back.
  DatasetId id_;
  PrivateCharge charge_;
  std::optional<Draft> fast_file_;
  std::optional<Draft> slow_file_;
  bool stays_fast_ = true;
  std::optional<Holdings::Busy> busy_;
  Earlier earlier_;  // as its entry was; in a tier: another try of the task has made the same bytes
};

}  // namespace tierpilot
