// What the kernel does with memory and disks, seen by eBPF programs that are loaded while the probe
// lives and vanish with it: page migration, reclaim, page faults, block I/O.
//
// Each subject stands alone: one that the kernel refuses is off with a reason, and the others run.
// All calls from one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/histogram.h"

namespace tierpilot {

struct PassiveOptions {
  std::vector<std::string> subjects{"migration", "reclaim", "faults", "block_io"};
  uint64_t event_pages = 512;              // a migration of at least so many pages is an event
  uint64_t event_reclaim_ns = 10'000'000;  // a reclaim that made an allocation wait so long, too
  uint32_t fault_sample_period = 64;       // where faults can only be sampled
  bool run_time_stats =
      true;  // the kernel then times every BPF program of the machine (~20 ns a run)
};

struct SubjectState {
  std::string subject;
  bool on = false;
  std::string reason;  // when off: "unavailable: ..."; when on: what is missing, if any
  std::vector<std::string> programs;  // attached ones
};

struct ProgCost {
  std::string name;
  uint32_t id = 0;
  uint64_t run_time_ns = 0;
  uint64_t run_count = 0;
  uint64_t missed_runs = 0;  // skipped because the program already ran on that CPU
};

// Counters are cumulative since start().
struct MigrationStats {
  struct Reason {
    uint64_t calls = 0, pages_moved = 0, pages_failed = 0;
    uint64_t busy_ns = 0;  // time inside the timed calls
  };
  uint64_t calls = 0;
  uint64_t pages_moved = 0;
  uint64_t pages_failed = 0;
  uint64_t untimed_calls = 0;  // nested in another call, or begun before the programs were loaded
  std::map<std::string, uint64_t> pages_by_reason;  // moved, by the kernel's name: "MR_DEMOTION"
  std::map<std::string, Reason> by_reason;
  std::map<std::string, uint64_t> calls_by_mode;  // "MIGRATE_ASYNC"
  Histogram duration_ns;                          // of one call of the kernel's migrate_pages()
  // Bytes moved per second inside migrate_pages(), in the latest stretch between two samples in
  // which pages moved; nothing until then.
  std::optional<double> live_gb_per_s;
};

struct ReclaimStats {
  struct Waits {
    uint64_t calls = 0, pages = 0;
    Histogram duration_ns;
  };
  Waits direct;  // allocations that waited for free pages of the machine
  Waits memcg;   // allocations that waited because their memory cgroup was at its limit
  uint64_t kswapd_wakes = 0;
  uint64_t untimed_calls = 0;
};

struct FaultStats {
  uint64_t faults = 0;            // of user code
  std::optional<uint64_t> major;  // those that waited for I/O
  std::string source;             // which kernel event counts them, and whether it is sampled
};

struct BlockIoStats {
  struct Operation {
    uint64_t requests = 0, bytes = 0, errors = 0;
  };
  Operation read, write, other;  // other: flush, discard, pass-through
  uint64_t untimed_requests = 0;
  Histogram latency_ns;  // from issue to the device until completion
};

struct PassiveSample {
  std::optional<MigrationStats> migration;
  std::optional<ReclaimStats> reclaim;
  std::optional<FaultStats> faults;
  std::optional<BlockIoStats> block_io;
};

// Counts of one tracked process group since track_group; absent where the subject is off.
// Buffered writes that the kernel's own threads write back count only with a cgroup.
struct GroupIo {
  std::optional<BlockIoStats> block_io;
  std::optional<FaultStats> faults;
};

struct PassiveEvent {
  enum class Kind { kMigration, kReclaim };
  Kind kind;
  int64_t end_boot_ns;                  // Clock::boot_ns
  std::optional<uint64_t> duration_ns;  // nothing: not timed
  uint64_t pages;
  uint64_t pages_failed;
  std::string detail;  // "MR_DEMOTION"; "direct" or "memcg"
  uint32_t tid, pid;   // in the kernel's first pid namespace
  std::string command;
};

class PassiveProbe {
 public:
  // Never fails as a whole: what the kernel refuses is off, with the reason in subjects().
  static std::unique_ptr<PassiveProbe> start(const PassiveOptions& options);
  ~PassiveProbe();

  const std::vector<SubjectState>& subjects() const;
  // One map read per subject; no system-wide cost.
  PassiveSample sample();

  // From now on counts what processes of group `pgid` cause; up to 1,024 groups, more are ignored
  // with a warning. `cgroup_id` (the inode number of its directory, 0: none) adds what kernel
  // threads write back on the group's behalf, where cgroup v2 has the io controller.
  void track_group(int32_t pgid, uint64_t cgroup_id = 0);
  void untrack_group(int32_t pgid);
  GroupIo group_io(int32_t pgid) const;

  // Readable when drain_events() has something; -1 when no subject with events is on.
  int event_fd() const;
  std::vector<PassiveEvent> drain_events();

  // Cost of each program. Empty run times have a reason in costs_unavailable().
  std::vector<ProgCost> costs() const;
  // "" when the kernel measures run times.
  const std::string& costs_unavailable() const;

 private:
  class Impl;
  explicit PassiveProbe(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tierpilot
