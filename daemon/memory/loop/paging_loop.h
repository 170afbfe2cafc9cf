// Watches processes and keeps their pages where they belong:
//
//   tracker -> heat map -> chunks -> plan -> mover
//
// Each round takes a sample of every target, plans for all of them together, and makes the moves of
// those whose mode is kEnforce. Slows down by itself when it costs more CPU than allowed.
//
//   TrackerChoice trackers(sysroot, pacer);
//   PagingLoop loop({.sysroot = sysroot, .pacer = pacer, .kernel = system_page_kernel(),
//                       .trackers = **trackers.choose(), .tiers = set.tiers}, options);
//   loop.add({.pid = pid, .group = {.name = "task 7"}, .mode = PagingMode::kEnforce});
//   std::jthread thread([&](std::stop_token stop) { loop.run(stop); });
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <vector>

#include "daemon/memory/heat/address_space.h"
#include "daemon/memory/heat/heat_map.h"
#include "daemon/memory/heat/tracker.h"
#include "daemon/memory/loop/chunks.h"
#include "daemon/memory/loop/cpu_credit.h"
#include "daemon/memory/mover/mover.h"
#include "daemon/memory/paging/plan.h"

namespace tierpilot {

struct LoopOptions {
  int64_t interval_ns = 1'000'000'000;
  int64_t mappings_interval_ns = 5'000'000'000;  // the memory map is read again so often
  uint64_t bytes_per_s = 256 << 20;              // of all moves together; 0: no limit
  double cpu_share = 0.05;  // of one core, for the loop's thread and the tracker; 0: no limit
  // What of it was not used is saved up to this, and pays for the moves after a change.
  int64_t cpu_burst_ns = 2'000'000'000;
  int64_t refused_pause_ns = 30'000'000'000;  // for memory that could not be moved at all
  HeatOptions heat{.max_regions = 8192};
  // Also moves by the heat of trackers that cannot rank pages, such as soft-dirty: for who has
  // asked for one by name. Else what would be moved by them is only advised.
  bool trust_any_tracker = false;
  ChunkOptions chunks;
  RangeFilter ranges;
  PagingLimits limits;  // move_bytes is set each round
  MoverOptions mover;   // bytes_per_s is that of the loop
};

// What the loop works with. Outlives it.
struct LoopEnvironment {
  const Sysroot& sysroot;
  Pacer& pacer;
  PageKernel& kernel;
  TrackerSource& trackers;
  std::vector<PagingTier> tiers;  // fast to slow; what is free is read each round
  // Called each round after that; sets loaded latencies. May be empty.
  std::function<void(std::vector<PagingTier>&)> refresh_tiers{};
};

struct LoopTarget {
  pid_t pid = 0;
  PagingGroup group;  // targets with a group of the same name share it, and its budget
  PagingMode mode = PagingMode::kObserve;
};

struct LoopCounters {
  uint64_t rounds = 0;
  uint64_t slowed_rounds = 0;   // began late, because the ones before cost too much CPU
  uint64_t promoted_bytes = 0;  // to a faster tier than most of it was in
  uint64_t demoted_bytes = 0;
  uint64_t planned_moves = 0;  // to be made
  uint64_t advised_bytes = 0;  // of the latest plan for targets that are only advised
  uint64_t ended_targets = 0;
  std::map<int, uint64_t> failed_pages;  // by errno
  int64_t cpu_ns = 0;                    // of the loop's thread
  int64_t tracker_cpu_ns = 0;            // of the kernel, on the trackers' behalf
};

// What is known of one target. A copy.
struct TargetView {
  LoopTarget target;  // its mode as it is, see trust_any_tracker
  std::vector<HeatRegion> regions;
  std::vector<PagingChunk> chunks;  // with where they are
  uint64_t tracked_bytes = 0;
  size_t heat_map_bytes = 0;
  std::string trouble;  // why the latest sample failed; empty: it did not
};

class PagingLoop {
 public:
  PagingLoop(LoopEnvironment environment, LoopOptions options);
  ~PagingLoop();

  // Any thread. A group with kStatic needs no tracker. kConflict for a process that is watched
  // already; the tracker's errors.
  Status add(const LoopTarget& target);
  void remove(pid_t pid);
  // False once it has ended.
  bool watches(pid_t pid) const;
  LoopCounters counters() const;
  std::vector<TargetView> view() const;
  std::vector<PagingTier> tiers() const;
  // Of the latest round, moves that were made and moves that are advised.
  MovePlan latest_plan() const;
  MovePlan latest_advice() const;

  // Rounds until `stop`. One thread.
  void run(std::stop_token stop);
  // One round, at once; for callers with a loop of their own. Returns when the next one is due. A
  // stop waits for the sample of one target at most.
  int64_t run_round(std::stop_token stop = {});

 private:
  struct Watched;

  void sample_all(std::stop_token stop);
  Status sample(Watched& watched, int64_t now_ns, const std::optional<Error>& silent);
  Status refresh_mappings(Watched& watched, int64_t now_ns);
  PagingInput make_input(PagingMode mode) const;
  MovePlan plan(PagingMode mode);
  void carry_out(const MovePlan& plan, std::stop_token stop);
  bool carry_out_alike(std::span<const PageMove> moves, std::stop_token stop, uint64_t& moved);
  void refresh_tiers();
  void note_full(size_t tier);
  void account(const PageMove& move, const MoveResult& result);
  // The tracker gets half of cpu_share.
  void pace_tracker(Watched& watched, int64_t now_ns);
  uint64_t round_budget(int64_t now_ns, uint64_t largest_chunk_bytes);
  int64_t tracker_cpu_ns() const;

  LoopEnvironment environment_;
  const LoopOptions options_;
  Mover mover_;  // the loop's thread only, like all below that is not guarded
  int64_t last_round_ns_ = 0;
  uint64_t carried_bytes_ = 0;
  double cpu_ns_per_moved_byte_ = 0.5;
  CpuCredit cpu_credit_;
  // By tier: free memory that the kernel was found to keep for itself, until when that is believed.
  struct Kept {
    uint64_t bytes = 0;
    int64_t until_ns = 0;
  };
  std::vector<Kept> kept_;
  std::map<PagingMode, BalanceState> balance_;

  // Guards what follows. Held during samples, not during moves.
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Watched>> targets_;
  LoopCounters counters_;
  MovePlan latest_plan_, latest_advice_;
  int64_t gone_tracker_cpu_ns_ = 0;  // of trackers that were removed
};

}  // namespace tierpilot
