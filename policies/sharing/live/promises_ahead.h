// Who starts must leave those that wait before it what was promised to them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

// Units that nothing starts on while it lives: nothing is predicted for one without a type. All are
// too many to be copied for each job.
class ClosedUnits {
 public:
  ClosedUnits() = default;
  ClosedUnits(const ClosedUnits&) = delete;
  ~ClosedUnits() { open(); }
  void close(LiveUnit& unit) { closed_.emplace_back(&unit.type, std::exchange(unit.type, {})); }
  void open() {
    // The first name that was taken of one is its own.
    for (auto at = closed_.rbegin(); at != closed_.rend(); ++at) *at->first = std::move(at->second);
    closed_.clear();
  }

 private:
  std::vector<std::pair<std::string*, std::string>> closed_;
};

// Through one look at a queue.
class PromisesAhead {
 public:
  static constexpr size_t kMostTries = 8;    // units that a job is tried on
  static constexpr size_t kMostAhead = 128;  // plans are made for each: more would take long

  // `most_plans`: so many are made at most, each for one that waits.
  explicit PromisesAhead(SharePolicy& policy, size_t most_plans = SIZE_MAX)
      : policy_(policy), most_plans_(most_plans) {}

  // The next in the queue waits on. `made`: it was promised to be done in time. Not where it is
  // full.
  void waits(WaitingJob job, bool made);
  bool is_full() const { return ahead_.size() >= kMostAhead; }
  // Units have changed.
  void changed() { kept_.reset(); }
  // With that start of a job one of them could not be kept any more, as far as is foreseen, which
  // could be kept without, or only if its run is no longer than is most likely; or it takes more
  // plans to find out. The nodes are as they were afterwards.
  bool would_break(std::vector<LiveNode>& nodes, const WaitingJob& job, const Start& start);
  // How often it would.
  size_t refusals() const { return refusals_; }

 private:
  struct Ahead {
    WaitingJob job;
    bool made = false;
  };
  enum class Outlook : uint8_t { kLost, kLikely, kSure };
  std::map<uint64_t, Outlook> outlooks(const std::vector<LiveNode>& nodes);
  static bool has_hope(const std::map<uint64_t, Outlook>& outlooks);

  SharePolicy& policy_;
  const size_t most_plans_;
  std::vector<Ahead> ahead_;
  bool any_made_ = false;
  size_t plans_ = 0, refusals_ = 0;
  std::optional<std::map<uint64_t, Outlook>> kept_;  // of those that were made, as units are
};

}  // namespace tierpilot::sharing
