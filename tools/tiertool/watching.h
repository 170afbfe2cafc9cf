// What "heat" and "move run" share: one foreign process, watched for a while.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "daemon/memory/loop/paging_loop.h"
#include "daemon/memory/loop/tiers.h"
#include "tools/tiertool/object.h"

namespace CLI {
class App;
}

namespace tierpilot::tiertool {

struct WatchOptions {
  pid_t pid = 0;
  std::string tracker = "auto";
  double seconds = 5;  // 0: until SIGINT or SIGTERM
  double interval_s = 1;
  PagingGroup group;
  PagingMode mode = PagingMode::kObserve;
  LoopOptions loop;
  bool keep_frames = false;
};

struct HeatFrame {
  double at_s = 0;  // since the start
  std::vector<HeatRegion> regions;
};

struct Watch {
  TrackerOffer tracker;
  std::vector<TrackerOffer> offers;  // of all kinds
  std::vector<HeatFrame> frames;     // with keep_frames: of evenly spread rounds, to kMaxFrames
  TargetView view;
  LoopCounters counters;
  MovePlan plan;  // latest made, or advised
  std::vector<PagingTier> tiers;
  std::string latency_source;
  std::vector<std::string> conflicts;
  double watched_s = 0;

  static constexpr size_t kMaxFrames = 512;
};

// The pid, --tracker, --seconds and --interval.
// kInvalid: there is no such tracker, nor is it "auto".
Status check_tracker(const std::string& name);
void add_watch_options(CLI::App& verb, WatchOptions& options);

// The tiers of this machine, ranked by latencies that are measured now: a second or two on a
// machine with several nodes. Where that fails, or of another machine, by HMAT or distances.
Result<TierSet> find_placement_tiers(const Context& context);

// Ends early, with what it has, when the process ends or a signal asks for it; whatever the tracker
// set up in the kernel is gone when it returns.
Result<Watch> watch_process(const Context& context, const WatchOptions& options);

// The tracker in use, what it misses, and why it is not another one.
nlohmann::ordered_json tracker_to_json(const Watch& watch);

}  // namespace tierpilot::tiertool
