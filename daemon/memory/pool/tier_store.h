// A directory that holds one tier's replicas: a tmpfs, bound to a NUMA node where one is given, or
// a durable one. Knows files, not budgets. Every method may block on I/O; const methods are
// thread-safe, as are draft(), private_copy() and publish() on different datasets.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/memory/pool/names.h"

namespace tierpilot {

struct TierStoreOptions {
  std::string label;  // "fast tier", for messages
  std::string dir;    // made if it is missing
  bool in_memory = false;
  int numa_node = -1;
  uint64_t budget_bytes = 0;
};

// A file that is not a replica yet; destroying it removes the file.
class Draft {
 public:
  Draft(UniqueFd fd, std::string path, uint64_t bytes)
      : fd_(std::move(fd)), path_(std::move(path)), bytes_(bytes) {}
  Draft(Draft&&) noexcept = default;
  Draft& operator=(Draft&&) = delete;
  ~Draft();

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  uint64_t bytes() const { return bytes_; }
  // Leaves the file where it is.
  void keep() { path_.clear(); }

 private:
  UniqueFd fd_;
  std::string path_;
  uint64_t bytes_;
};

struct FoundReplica {
  ReplicaFile file;
  bool home = false;
  int64_t modified_ns = 0;
};

class TierStore {
 public:
  // Refuses a directory that another pool uses (kConflict), an in-memory tier that is not on tmpfs
  // and a NUMA node that cannot hold it (kInvalid).
  static Result<TierStore> open(TierStoreOptions options);

  // Complete replicas, oldest first. Drafts and private copies are removed. A replica whose size is
  // not the one in its name is removed too, or set aside as ".damaged-..." if it is a home replica.
  // One of an older program is read, and its digest added to its name.
  Result<std::vector<FoundReplica>> scan() const;

  // An empty draft with its space allocated: no room is kExhausted, with the numbers.
  Result<Draft> draft(uint64_t bytes);
  // The same as `owner`'s writable copy of a dataset. The owner's program opens it by path.
  Result<Draft> private_copy(const std::string& owner, const std::string& dataset, uint64_t bytes);
  // Takes a private copy back once its owner has ended. Whatever the owner's program may have put
  // in its place, only a regular file with one link that nobody has open for writing is accepted.
  Result<Draft> reclaim_private(const std::string& owner, const std::string& dataset) const;
  void remove_private(const std::string& owner, const std::string& dataset) const;

  // Has the draft's bytes on a durable tier's disk: a full one may say so only now.
  Status settle(const Draft& draft) const;
  // Makes the draft a read-only replica in one step; on return it is durable in a durable tier, and
  // its pages have left the page cache. On failure nothing is left.
  Status publish(Draft draft, const ReplicaFile& file, bool home) const;
  Result<UniqueFd> open_replica(const ReplicaFile& file) const;
  Status remove(const ReplicaFile& file) const;
  // Out of the way as ".damaged-...", for the operator, unless it could not be renamed.
  Status set_aside(const ReplicaFile& file) const;
  // The sticky bit of its file marks a home replica: one inode, so it cannot come apart from the
  // data, and every Linux file system has it (user attributes came to tmpfs with 6.6).
  Status set_home(const ReplicaFile& file, bool home) const;
  // A durable tier must not be served from the page cache later on: that would be another tier.
  void drop_page_cache(int fd) const;

  std::string path_of(const ReplicaFile& file) const;
  const TierStoreOptions& options() const { return options_; }
  // "slow tier '/var/lib/tierpilot/slow'"
  std::string name() const;

 private:
  TierStore(TierStoreOptions options, UniqueFd dir)
      : options_(std::move(options)), dir_(std::move(dir)) {}
  Status check_file_system() const;
  Result<Draft> create_file(const std::string& file_name, uint64_t bytes) const;
  Status allocate(int fd, uint64_t bytes) const;
  Status sync_dir() const;
  Status stamp(ReplicaFile& file) const;
  // All that could be; what cannot be read is left alone.
  std::vector<FoundReplica> stamped(std::vector<FoundReplica> found) const;

  TierStoreOptions options_;
  UniqueFd dir_;  // holds the lock
  std::unique_ptr<std::atomic<uint64_t>> serial_ = std::make_unique<std::atomic<uint64_t>>(0);
};

}  // namespace tierpilot
