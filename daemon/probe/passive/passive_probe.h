// What the kernel does with memory and disks, seen by eBPF programs that are loaded while the probe
// lives and vanish with it: page migration, reclaim, compaction, page faults, NUMA-hint faults,
// block I/O. What the kernel counts by itself is read from there.
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
  // Also "fault_time", which is off by default: it slows every page fault of the machine.
  std::vector<std::string> subjects{"migration", "reclaim",   "compaction",
                                    "faults",    "numa_hint", "block_io"};
  uint64_t event_pages = 512;              // a migration of at least so many pages is an event
  uint64_t event_reclaim_ns = 10'000'000;  // a reclaim that made an allocation wait so long, too
  // Of migrations of one small page one in so many is timed, by chance, and stands for the others;
  // all are counted.
  uint32_t single_page_period = 8;
  // What watching migrations may take from the machine, of one CPU on average. Where their calls
  // are too many for it they are watched for a part of the time only, see MigrationStats. 0: no
  // limit.
  double cpu_share = 0.005;
  // What the programs add to a call; nothing: as the benchmark found.
  std::optional<int64_t> migration_call_ns;
  uint32_t fault_time_period = 16;  // every so many faults of a CPU one is timed
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

// Calls of the kernel's migrate_pages() by where their pages were, where they were to go, and why.
// A page may land elsewhere when the target is full and the caller allows it.
struct MigrationCounts {
  struct Reason {
    uint64_t calls = 0, pages_moved = 0, pages_failed = 0;
    // What busy_ns was spent on. Of calls that move one small page one in a few is timed, by
    // chance, and counts in both for the others.
    uint64_t timed_pages = 0;
    uint64_t busy_ns = 0;

    Reason& operator+=(const Reason& more);
  };
  struct Pair {
    std::optional<int> from_node;  // nothing: of several nodes, or not seen
    std::optional<int> to_node;    // nothing: mbind's policy chooses, or not seen
    Reason total;
    std::map<std::string, Reason> by_reason;  // by the kernel's name: "MR_DEMOTION"
    std::optional<double> live_gb_per_s;      // as below; only of the machine
  };
  Reason total;
  std::map<std::string, Reason> by_reason;
  std::vector<Pair> pairs;  // by nodes, those that were seen; together they are the total
};

// All of it is of what was watched.
struct MigrationStats : MigrationCounts {
  // Whether watched or not, by the kernel's own counters; nothing where it does not tell.
  struct Pages {
    uint64_t moved = 0, failed = 0;
  };
  std::optional<Pages> machine;
  std::string machine_unavailable;
  double watched_time_share = 1;
  std::optional<double> watched_pages_share;  // of `machine`; nothing: none moved

  // Nested in another call, begun before the programs were loaded, or lost.
  uint64_t untimed_calls = 0;
  uint64_t lost_calls = 0;  // begun when too many were in progress: neither nodes nor a duration
  std::string pairs_unavailable;  // why no pairs are told apart; "" when they are
  Histogram duration_ns;          // of one call; those that a timed one stands for are in it
  // Bytes moved per second inside migrate_pages(), in the latest stretch between two samples in
  // which pages moved; nothing until then.
  std::optional<double> live_gb_per_s;
};

// Of one owner.
struct OwnedMigrations : MigrationCounts {
  enum class By {
    kMemory,  // calls whose first page is charged to its memory cgroup, whoever calls
    kCaller,  // calls that its processes make, whosever pages move
  };
  By by = By::kMemory;
  uint64_t lost_calls = 0;  // that found no room in the kernel's table
  // Of the machine's pages that moved since it is tracked; nothing: none did, or nobody knows.
  std::optional<double> watched_pages_share;
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

struct CompactionStats {
  struct Runs {
    uint64_t zones = 0;     // each run goes through one zone
    Histogram duration_ns;  // of one zone
  };
  Runs direct;      // a task waits for it
  Runs background;  // by kcompactd
  uint64_t untimed_runs = 0;
};

// On pages of processes, by user code or by the kernel on its behalf.
struct FaultStats {
  uint64_t faults = 0;
  uint64_t major = 0;  // those that waited for I/O
};

struct NumaHintStats {
  uint64_t faults = 0;
  // Nothing when only the kernel's own total is known.
  std::optional<uint64_t> pages, migrated_pages;
  std::map<int, uint64_t> pages_by_node;  // where they were after the fault
  std::string source;                     // "fentry task_numa_fault", "/proc/vmstat"
};

// Time inside the kernel's handle_mm_fault(), without the entry to and exit from the kernel. A
// sample of the faults.
struct FaultTimeStats {
  std::map<int, Histogram> by_node_ns;  // faults that allocated a page, by its node
  Histogram no_page_ns;                 // those that found or kept one
  uint32_t period = 1;                  // each stands for so many
  uint64_t lost = 0;                    // timed, or to be timed, and found no room
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
  std::optional<CompactionStats> compaction;
  std::optional<FaultStats> faults;
  std::optional<NumaHintStats> numa_hint;
  std::optional<FaultTimeStats> fault_time;
  std::optional<BlockIoStats> block_io;
};

// Counts of one tracked process group since track_group; absent where the subject is off.
// Buffered writes that the kernel's own threads write back count only with a cgroup.
struct GroupIo {
  std::optional<BlockIoStats> block_io;
  std::optional<FaultStats> faults;
  std::optional<ReclaimStats> reclaim;        // its own waits; kswapd is nobody's
  std::optional<CompactionStats> compaction;  // what its tasks waited for
  std::optional<NumaHintStats> numa_hint;
  std::optional<OwnedMigrations> migration;
  std::string migration_unavailable;  // why there are none
  std::optional<FaultTimeStats> fault_time;
};

// The cgroup v2 that a tracked group has for itself, if any.
struct OwnCgroup {
  uint64_t id = 0;  // inode number of its directory, 0: none
  // It has the memory controller: migrations of what is charged to it are the group's, whoever
  // makes them. Without, those that the group's processes make.
  bool charges_memory = false;
};

// Of one tracked cgroup, without those below it.
struct CgroupMemory {
  std::optional<OwnedMigrations> migration;
  std::optional<FaultTimeStats> fault_time;  // of faults by its processes
};

struct PassiveEvent {
  enum class Kind { kMigration, kReclaim };
  Kind kind;
  int64_t end_boot_ns;                  // Clock::boot_ns
  std::optional<uint64_t> duration_ns;  // nothing: not timed
  uint64_t pages;
  uint64_t pages_failed;
  std::optional<int> from_node, to_node;  // of a migration, as in MigrationStats::Pair
  std::string detail;                     // "MR_DEMOTION"; "direct" or "memcg"
  uint32_t tid, pid;                      // in the kernel's first pid namespace
  std::string command;
};

class PassiveProbe {
 public:
  // Never fails as a whole: what the kernel refuses is off, with the reason in subjects().
  static std::unique_ptr<PassiveProbe> start(const PassiveOptions& options);
  ~PassiveProbe();

  const std::vector<SubjectState>& subjects() const;
  // A few map reads and /proc/vmstat; no system-wide cost.
  PassiveSample sample();

  // From now on counts what processes of group `pgid` cause; up to 1,024 groups, more are ignored
  // with a warning.
  void track_group(int32_t pgid, const OwnCgroup& cgroup = {});
  void untrack_group(int32_t pgid);
  // Walks all tasks of the machine once, for the faults; those of a task that is being taken down
  // are missing until it is gone.
  GroupIo group_io(int32_t pgid) const;

  // As above for whatever is charged to, or runs in, a cgroup with the memory controller.
  void track_cgroup(uint64_t id);
  CgroupMemory cgroup_memory(uint64_t id) const;

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
