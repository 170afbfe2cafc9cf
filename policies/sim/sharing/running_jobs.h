// Jobs that run on shared units in a simulation, how fast they do, and what came of the units'
// time.
#pragma once

#include <map>
#include <vector>

#include "policies/sharing/live/share_policy.h"
#include "policies/sim/sharing/timed_jobs.h"

namespace tierpilot::sharing {

inline constexpr double kLeastSpeed = 1e-4;  // also without a share: all end
inline constexpr double kDone_s = 1e-6;      // of work: a little of what is left rounds to nothing

struct Running {
  const TimedJob* job = nullptr;
  size_t unit = 0;
  uint32_t milli = 0;
  double left_s = 0;     // of work, if nothing held it back
  double started_s = 0;  // this time
  double promise_end_s = kNoPromise;
  bool ran = false;  // before it was preempted: it has shown its use and pace
  bool on_trial = false;
  double speed = 1;
  double kept = 1;  // of what its share leaves, by its neighbours
};

// Sums over time, in seconds of one unit.
struct UnitTime {
  double used = 0, given = 0, best_effort = 0;  // until the last arrival
  double slowed = 0, ran = 0;                   // by neighbours; over all time
};

class RunningJobs {
 public:
  // `retained`: what policies think of slow-downs; what is left of a run is told by the pace, as
  // slow as it is, and by that.
  RunningJobs(const TimedWorkload& workload, Retained retained, double seen_after_s,
              double checkpoint_s);

  const std::map<uint64_t, Running>& all() const { return running_; }
  const Running* find(uint64_t id) const;
  const std::vector<uint64_t>& on_unit(size_t unit) const { return on_unit_[unit]; }
  bool has_shown(const Running& running, double now_s) const {
    return running.ran || now_s - running.started_s >= seen_after_s_;
  }

  void start(const Running& running);
  void resize(uint64_t id, uint32_t milli);
  // It has a promise from now on, or none any more.
  void end_trial(uint64_t id, bool made);
  void end(uint64_t id);
  // Throws std::logic_error where a policy has given more of the unit than there is.
  void check(size_t unit) const;
  // What has to be called after any of these, once for all of one time.
  void set_speeds();
  // Everybody runs on; `counted_s` of it is before the last arrival.
  void advance(double seconds, double counted_s, UnitTime& sums);

  double next_end_s(double now_s) const;
  // Those on trial as they are hoped to be.
  LiveUnit as_live(size_t unit, double now_s, bool promise_waits) const;
  LiveJob as_live(const Running& running, double now_s) const;  // as it is known
  // What is known of it now.
  Sharer sharer(const Running& running, double now_s) const;
  // Of its work, as it is thought to be if nothing held it back.
  double thought_left_s(const Running& running, double now_s) const;

 private:
  double thought_kept(const Running& running, double now_s) const;

  const TimedWorkload& workload_;
  Retained retained_;
  double seen_after_s_;
  double checkpoint_s_;
  std::map<uint64_t, Running> running_;
  std::vector<std::vector<uint64_t>> on_unit_;  // by id
};

}  // namespace tierpilot::sharing
