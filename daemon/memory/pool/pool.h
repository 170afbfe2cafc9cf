// The dataset pool of one node: named, versioned bytes in a fast and a slow tier, served to tasks
// as files of the fast one.
//
// All methods are thread-safe. Those that take a callback return at once; callbacks, and on_change,
// run in order through the Post function given to open(). Whatever takes long runs on the pool's
// own threads.
//
// Limits: replicas handed to tasks are files without write permission, which keeps a task of the
// same user from harming them by accident; root, and whoever may write the folder, still can. A
// task of another user must be handed its private copies, and they must be taken back before
// finish().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "daemon/memory/pool/outbox.h"
#include "daemon/memory/pool/remote.h"
#include "daemon/memory/pool/types.h"

namespace tierpilot {

class Pool {
 public:
  using OnChange = std::function<void(const ReplicaChange&)>;
  using ServeDone = std::function<void(Result<Served>)>;
  using FinishDone = std::function<void(Committed)>;
  using CreateDone = std::function<void(Result<ReplicaChange>)>;
  using CheckDone = std::function<void(Result<ReplicaCheck>)>;
  using StatusDone = std::function<void(Status)>;

  // Makes missing folders, takes their locks and finds what an earlier run left: complete replicas
  // stay, half-written files and private copies go. Blocks. Error messages name option and folder.
  // `remote` must not be null.
  static Result<std::unique_ptr<Pool>> open(PoolOptions options,
                                            std::shared_ptr<RemoteSource> remote, Post post,
                                            OnChange on_change);
  // Serves under way and waiting end with kUnavailable, commits under way are finished. `post` must
  // work until this returns.
  ~Pool();

  // Brings all items into the fast tier and pins them until finish(owner), evicting what is least
  // recently used and unpinned. If pinned datasets take the room, waits its turn (FIFO). A write
  // gets a private copy; readers keep the version they have. Errors, after which nothing is pinned:
  //   kInvalid    a name, version or size that cannot be; a dataset named twice; larger than the
  //               budget
  //   kExhausted  a full disk
  //   kConflict   the owner has a request already; a second writer of a dataset; cancelled
  //   kNotFound, kIo, or what the RemoteSource said: it cannot be had
  // What moves is compared with its digest: a copy that has other bytes goes, which on_change
  // tells, and another one is taken. What lies in the fast tier already is not read again: see
  // verify().
  void serve(std::string owner, std::vector<ServeItem> items, ServeDone done);
  // Ends a serve that waits or runs; it completes with kConflict. Nothing to do if it has completed
  // already: a completed one must be finished, even if its completion arrives after this.
  void cancel(const std::string& owner);
  // Ends the pins. After success each private copy becomes the next version of its dataset (in the
  // result; durable if the slow tier is), with this node as its home; else it is thrown away.
  // Older versions stay: drop() them when nobody can need them any more.
  // On error nothing was committed, and pins and copies are gone all the same.
  void finish(const std::string& owner, bool success, FinishDone done);

  // Makes version 1 of a new dataset: a home replica in the slow tier. An error leaves nothing.
  void create(const std::string& name, CreateSource source, CreateDone done);
  // Removes all versions below `below_version`, home or not; UINT64_MAX: all. Pinned ones go when
  // their last pin does. Unknown names are fine.
  void drop(const std::string& name, uint64_t below_version, StatusDone done);
  // Removes this version with this content, which the cluster goes on without.
  void discard(const DatasetId& id, StatusDone done);
  // A home replica is never dropped for room. Making a replica one also writes it to a durable slow
  // tier. kNotFound if there is no such replica here.
  void set_home(const DatasetId& id, bool home, StatusDone done);
  // Makes this node one of those that keep the version: a home replica in the slow tier, from the
  // fast one or from the item's sources. Errors as of serve() and create().
  void keep(ServeItem item, CreateDone done);
  // Brings a replica of the slow tier into the fast one ahead of any use, if there is room that
  // nothing has to leave for: kExhausted otherwise. Nothing to do if it is there; kNotFound if
  // there is no such replica here.
  void promote(const DatasetId& id, StatusDone done);
  // Takes a replica out of the fast tier, as if room were made; nothing to do if it is not there,
  // kConflict while it is pinned, or on its way.
  void demote(const DatasetId& id, StatusDone done);
  // Reads the copies that are here and compares them with the digest; what is damaged goes.
  // kNotFound if there is no such replica here.
  void verify(const DatasetId& id, CheckDone done);

  // For other nodes: reads up to into.size() bytes from `offset` on, from either tier; 0 at the
  // end. Blocks on one pread. Does not count as a use.
  Result<size_t> read(const DatasetId& id, uint64_t offset, std::span<std::byte> into);

  std::vector<ReplicaChange> replicas() const;
  PoolUsage usage() const;
  PoolTotals totals() const;

 private:
  struct State;
  explicit Pool(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tierpilot
