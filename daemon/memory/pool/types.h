// The values that go into and come out of a node's dataset pool. All sizes are logical bytes (a
// tmpfs file really takes whole pages); GB/s is 1e9 bytes a second.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/histogram.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "daemon/memory/pool/names.h"

namespace tierpilot {

struct PoolOptions {
  std::string fast_dir;     // on tmpfs
  int fast_numa_node = -1;  // binds the pages of fast files; -1 leaves them unbound
  uint64_t fast_budget_bytes = 0;
  std::string slow_dir;
  // "directory": durable files, and a promoted dataset keeps its slow copy (evicting it is a drop).
  // "numa": tmpfs bound to slow_numa_node, gone after a reboot; tiers are exclusive, so promotion
  // and eviction are moves.
  std::string slow_kind = "directory";
  int slow_numa_node = -1;
  uint64_t slow_budget_bytes = 0;
  int workers = 2;  // threads that bring datasets in; one more ends requests

  // What a task writes to a dataset stays in one tier where these are exclusive, else in both.
  uint64_t largest_write_bytes() const {
    return slow_kind == "numa" ? std::max(fast_budget_bytes, slow_budget_bytes) : slow_budget_bytes;
  }
};

enum class ServeHow { kHit, kPromotion, kFetch };

struct ServeItem {
  std::string name;
  uint64_t version = 0;
  uint64_t bytes = 0;
  bool write = false;
  std::vector<std::string> sources;  // addresses of nodes that hold it, best first
  ContentDigest digest{};
  DatasetId id() const { return {name, version, digest}; }
};

struct ServedItem {
  std::string name;
  uint64_t version = 0;  // the version that was read, also for a write
  std::string path;      // absolute; a read's file is read-only, a write's is this owner's own
  bool write = false;
  // A request that waited for another one's load of the same dataset reports that load's way.
  ServeHow how = ServeHow::kHit;
  uint64_t bytes = 0;
  int64_t service_ns = 0;
  // Of that, until the file was there: without waiting and making room. Of another one's load that
  // it waited for, all of it: bytes over this is the rate of the way.
  int64_t transfer_ns = 0;
};

struct Served {
  std::vector<ServedItem> items;
  int64_t queued_ns = 0;     // received until work on it began: waiting for pins and for a worker
  int64_t service_ns = 0;    // received until all of it was served
  uint64_t local_bytes = 0;  // found in the fast tier
  uint64_t promoted_bytes = 0;
  uint64_t fetched_bytes = 0;
  uint64_t evicted_bytes = 0;          // left the fast tier to make room for this
  uint64_t evicted_written_bytes = 0;  // ... of these, really written to the slow tier
  int64_t evict_ns = 0;
  int64_t promote_ns = 0;  // transfer_ns of those that were promoted
  int64_t fetch_ns = 0;    // ... and fetched
};

struct ReplicaChange {
  std::string name;
  uint64_t version = 0;
  uint64_t bytes = 0;
  bool in_fast = false;
  bool in_slow = false;  // neither: the replica is gone
  bool home = false;     // this node keeps it until it is told to drop it
  ContentDigest digest{};
  bool damaged = false;  // a copy here turned out not to have these bytes any more, and went
  DatasetId id() const { return {name, version, digest}; }
  bool operator==(const ReplicaChange&) const = default;
};

enum class CopyState { kAbsent, kGood, kDamaged };
std::string_view copy_state_name(CopyState state);  // "absent", "good", "damaged"

// What a node's copies of a version turned out to be.
struct ReplicaCheck {
  CopyState fast = CopyState::kAbsent;
  CopyState slow = CopyState::kAbsent;
};

struct ImportFile {
  std::string path;          // a regular file that the daemon can read; symbolic links are followed
  bool of_everyone = false;  // only one that everybody on this machine may read
};
struct ImportOpenFile {
  std::shared_ptr<const UniqueFd> file;  // a regular one, open for reading
  std::string path;                      // for messages
};
struct ZeroFill {
  uint64_t bytes = 0;
};
struct RandomFill {
  uint64_t bytes = 0;
  uint64_t seed = 0;  // the same seed gives the same bytes (std::mt19937_64)
};
using CreateSource = std::variant<ImportFile, ImportOpenFile, ZeroFill, RandomFill>;

struct PoolUsage {
  uint64_t fast_budget_bytes = 0;
  uint64_t fast_used_bytes = 0;    // replicas, private copies and room reserved for arriving ones
  uint64_t fast_pinned_bytes = 0;  // promised to admitted requests, arrived or not
  uint64_t slow_budget_bytes = 0;
  uint64_t slow_used_bytes = 0;
  uint64_t replicas = 0;
  uint64_t waiting_requests = 0;
};

// Unset until the first transfer of its kind.
struct TransferRate {
  std::optional<double> last_gb_per_s;
  // Decayed bytes over decayed time, so that a small transfer weighs little.
  std::optional<double> mean_gb_per_s;
};

struct ServiceTotals {
  // Served datasets and their bytes, by the way they took.
  uint64_t hits = 0, promotions = 0, fetches = 0;
  uint64_t hit_bytes = 0, promoted_bytes = 0, fetched_bytes = 0;
  uint64_t failed_requests = 0;  // refused or failed serves, cancelled ones included
  Histogram service_ns;          // of whole requests
};

struct EvictionTotals {
  uint64_t evictions = 0, evicted_bytes = 0, evicted_written_bytes = 0;
  uint64_t slow_drops = 0;  // non-home replicas dropped from a full slow tier
  TransferRate evict;       // write-back including fsync; a drop of a clean copy has no rate
};

// Why what a task wrote was not kept.
struct CommitError : Error {
  CommitError(Error error, uint64_t bytes = 0) : Error(std::move(error)), no_room_bytes(bytes) {}
  uint64_t no_room_bytes;  // of a version that there was no room for; 0: another cause
};
using Committed = tl::expected<std::vector<ReplicaChange>, CommitError>;

// Of private copies.
struct CommitTotals {
  uint64_t commits = 0, discards = 0;
};

struct ArrivalRates {
  TransferRate promote;
  TransferRate fetch;
};

struct MovementTotals : EvictionTotals, CommitTotals, ArrivalRates {};

struct PoolTotals : ServiceTotals, MovementTotals {};

}  // namespace tierpilot
