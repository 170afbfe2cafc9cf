// What watches a process's accesses. Each tracker sees something else, and says what it misses.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/sysroot.h"
#include "daemon/memory/heat/access.h"

namespace tierpilot {

enum class TrackerKind {
  kDamon,         // the kernel checks accessed bits of sample pages
  kNumaHint,      // faults that NUMA balancing provokes, with their addresses
  kSoftDirty,     // pages written since the last look
  kFaultAddress,  // faults that happen anyhow: first touch, copy on write, swap-in
  // Addresses of sampled loads and stores (PEBS, IBS, SPE) through perf_event_open with
  // PERF_SAMPLE_ADDR: the finest of all, at cache line resolution and with read latencies. A
  // tracker of this kind needs a PMU, which virtual machines seldom have; none is built in.
  kPmuAddress,
};

std::string_view tracker_name(TrackerKind kind);
// Nothing for an unknown name.
Result<TrackerKind> tracker_from_name(std::string_view name);

struct TrackerTraits {
  TrackerKind kind;
  std::string resolution;   // in space and time
  std::string blind_spots;  // what it does not see
  std::string effect;       // what it does to the watched process
  bool sees_reads = false;
  bool sees_repeats = false;  // further accesses to memory that is in use already
  // Sees reads and writes of all pages alike, so that one page's heat can be held against
  // another's. Without it, what it misses would be thrown out of fast memory.
  bool ranks_pages = false;
};

// Watches one process from start() to stop() or destruction. One thread at a time.
class HeatTracker {
 public:
  virtual ~HeatTracker() = default;
  virtual const TrackerTraits& traits() const = 0;
  // kUnavailable, kDenied or kNotFound (no such process).
  virtual Status start() = 0;
  // What was accessed in `ranges` (sorted, disjoint) since the last call or start: sorted and
  // disjoint. kNotFound when the process has ended.
  virtual Result<std::vector<AccessSample>> sample(std::span<const TrackedRange> ranges) = 0;
  // Leaves nothing behind in the kernel.
  virtual void stop() = 0;
  // CPU time the kernel spends on this tracker outside the caller's thread, where it tells.
  virtual int64_t kernel_cpu_ns() const { return 0; }
  // Looks `factor` times as often from now on, as far as it can: the CPU time follows.
  virtual void scale_effort(double /*factor*/) {}
  // For how long the latest sample watched each page; 0: cannot be said.
  virtual double observed_s() const { return 0; }
};

struct TrackerOffer {
  TrackerTraits traits;
  Status available;   // the error says why not
  std::string way{};  // of several to the same tracker, the one that is taken: "through its files"
};

// Makes trackers, of the kinds that this machine has. Outlives what it makes.
class TrackerSource {
 public:
  virtual ~TrackerSource() = default;
  // Looks, and changes nothing.
  virtual TrackerOffer offer() const = 0;
  // Whether this process may watch that one, as far as it can be said without trying.
  virtual Status may_watch(pid_t /*pid*/) const { return {}; }
  // Takes what it needs of the kernel, and gives it back when destroyed. Again: does nothing.
  virtual Status open() = 0;
  // After open().
  virtual Result<std::unique_ptr<HeatTracker>> make(pid_t pid) = 0;
};

}  // namespace tierpilot
