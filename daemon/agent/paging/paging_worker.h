// Places the memory of tasks and of processes that rules name: finds them, and drives the loop.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "daemon/agent/paging/paging_targets.h"
#include "daemon/memory/heat/choose.h"
#include "daemon/memory/loop/loaded_latency.h"
#include "daemon/memory/loop/paging_loop.h"
#include "daemon/paging_config.h"

namespace tierpilot::agent {

// Outlives who uses it.
struct PagingEnvironment {
  const Sysroot& sysroot;
  Pacer& pacer;
  PageKernel& kernel;
  // Called when the first process is to be watched; what it returns is gone after the last one, and
  // nothing of it is left in the kernel then.
  std::function<std::unique_ptr<TrackerChoice>()> make_trackers;
};

struct PagingState {
  std::string tracker;  // empty: none is in use
  size_t watched = 0;
  size_t unwatched = 0;   // should be watched and cannot be, for `trouble`
  std::string trouble;    // the latest
  LoopCounters counters;  // since the daemon started
};

// One thread.
class PagingWorker {
 public:
  static constexpr int64_t kNever = INT64_MAX;

  PagingWorker(const PagingConfig& config, const PagingEnvironment& environment,
               std::vector<PagingTier> tiers);
  ~PagingWorker();

  void task_started(const PlacedTask& task);
  void task_ended(AttemptId attempt);
  // New latencies are taken over; with other nodes everything begins anew.
  void set_tiers(std::vector<PagingTier> tiers);

  // What is due. Returns when something will be (CLOCK_BOOTTIME), or kNever: before a task starts
  // there is nothing to do.
  int64_t step(std::stop_token stop = {});
  PagingState state() const;

 private:
  struct Watched {
    LoopTarget target;
    uint64_t started_ticks = 0;
    uint64_t resident_bytes = 0;  // when it was looked for last
  };
  struct Engine;

  bool has_anything_to_find() const;
  void hurry();
  void scan();
  void drop_unwanted(const std::vector<PagingTarget>& wanted);
  void add(const PagingTarget& target);
  bool smallest_gives_way_to(const PagingTarget& target);
  void make_engine();
  void drop_engine();
  void tell(const std::string& trouble);

  const PagingConfig& config_;
  const PagingEnvironment environment_;
  std::vector<PagingTier> tiers_;
  std::map<AttemptId, PlacedTask> tasks_;
  std::map<pid_t, Watched> watched_;
  std::unique_ptr<Engine> engine_;  // null: nothing is watched
  LoopCounters gone_;               // of engines before
  std::set<pid_t> gave_way_;        // in this look for processes
  size_t unwatched_ = 0;
  std::string trouble_;
  int64_t next_scan_ns_ = 0;
  int64_t earliest_scan_ns_ = 0;
  int64_t next_round_ns_ = 0;
};

}  // namespace tierpilot::agent
