// Who starts must leave those that wait what was promised to them.
#pragma once

#include <cstdint>
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

// Of those that were made, through one look at a queue.
class WaitingPromises {
 public:
  static constexpr size_t kMostTries = 8;  // units that a job is tried on
  static constexpr size_t kMost = 128;     // plans are made for each: more would take long

  // `made`: in the order of the queue, the first ones count. `most_plans`: so many are made at
  // most, each for one that waits.
  WaitingPromises(SharePolicy& policy, std::vector<WaitingJob> made, size_t most_plans = SIZE_MAX);

  // It waits no more.
  void started(uint64_t job);
  // Units have changed.
  void changed() { outlooks_.reset(); }
  // With that start of a job one of them could not be kept any more, as far as is foreseen, which
  // could be kept without, or only if its run is no longer than is most likely; or it takes more
  // plans to find out. Where the job is one of them itself, those that come after it count only as
  // long as it can wait, and it does not wait for plans. The nodes are as they were afterwards.
  bool would_break(std::vector<LiveNode>& nodes, const WaitingJob& job, const Start& start);
  // How often it would.
  size_t refusals() const { return refusals_; }

 private:
  enum class Outlook : uint8_t { kLost, kLikely, kSure };
  using Outlooks = std::vector<Outlook>;  // of those that wait

  // Without the one at `but_for`, which has kSure then.
  Outlooks foreseen(const std::vector<LiveNode>& nodes, size_t but_for);
  size_t place_of(uint64_t job) const;
  bool breaks(const Outlooks& with, size_t own) const;

  SharePolicy& policy_;
  const size_t most_plans_;
  std::vector<WaitingJob> made_;
  size_t plans_ = 0, refusals_ = 0;
  std::optional<Outlooks> outlooks_;  // as units are
};

}  // namespace tierpilot::sharing
