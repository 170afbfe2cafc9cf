// Units with the jobs that hold shares of them, as decisions in time see them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policies/sharing/interference/sharer.h"
#include "policies/sharing/share.h"

namespace tierpilot::sharing {

inline constexpr double kNoPromise = std::numeric_limits<double>::infinity();

// What a job is predicted to do on one type of unit.
struct Predicted {
  uint32_t milli = kWholeUnit;  // of the unit's compute that it uses while nothing holds it back
  uint64_t memory_bytes = 0;    // 0: not known
  double run_s = 0;             // while nothing holds it back; 0: not known
  double run_upper_s = 0;       // as long or shorter in 95 of 100
  double start_s = 0;  // of both: it loads and prepares, for which it can use all of the unit
};

// A job that holds a share of a unit.
struct LiveJob {
  uint64_t id = 0;
  JobClass job_class = JobClass::kBestEffort;
  Sharer sharer;                     // what slow-downs are known by
  Share share;                       // it has
  uint32_t need_milli = kWholeUnit;  // that it would use if nothing held it back
  uint32_t own_milli = kWholeUnit;   // its user asked for; what it has beyond is lent to it
  double elapsed_s = 0;              // since its start
  double predicted_s = 0;            // of its whole run when it was placed; 0: not known
  double left_s = 0;        // of its run if nothing held it back, neighbours neither; 0: not known
  double left_upper_s = 0;  // as long or shorter in 95 of 100
  double start_left_s = 0;  // of both: it still starts
  double kept = 1;          // of its speed, that is thought to be left of it by who is beside it
  double promise_left_s = kNoPromise;  // until it is to be done
  bool on_trial = false;               // the promise is not made
  bool leaves = false;                 // it is to end, and does so soon
  bool takes_checkpoints = false;
  double unsaved_s = 0;  // what an end now would lose
  double ends_in_s = 0;  // at most, once it is to: it may be given time for a checkpoint

  // More would do nothing for it now.
  uint32_t usable_milli() const { return start_left_s > 0 ? kWholeUnit : need_milli; }
  bool is_promised() const { return promise_left_s < kNoPromise; }
  // Of a best-effort job that goes on with what its user asked for.
  uint32_t lent_milli() const {
    return job_class == JobClass::kBestEffort ? share.milli - std::min(share.milli, own_milli) : 0;
  }
};

struct LiveUnit {
  std::string type;
  Share whole{kWholeUnit, 0};
  std::vector<LiveJob> jobs;
  // Somebody waits who was promised to be done in time, and counts on it that those with promises
  // here are ahead of theirs.
  bool promise_waits = false;

  Share free() const;
  uint32_t best_effort_milli() const;
  // Of best-effort jobs that use next to nothing: less than it is worth to end them for.
  uint32_t hardly_used_milli() const;
};

// A unit's index is the same in every call, also where it is idle.
using LiveNode = std::vector<LiveUnit>;

// A job that waits.
struct WaitingJob {
  uint64_t id = 0;
  JobClass job_class = JobClass::kBestEffort;
  Sharer sharer;
  std::map<std::string, Predicted> predicted;  // by type of unit; others will not do
  std::optional<size_t> only_node;             // by index: no other will do
  Share asked;                                 // by its user; 0 thousandths: as predicted
  double promise_left_s = kNoPromise;

  bool is_promised() const { return promise_left_s < kNoPromise; }
  uint64_t memory_bytes_on(const Predicted& unit) const {
    return asked.memory_bytes > 0 ? asked.memory_bytes : unit.memory_bytes;
  }
};

// How fast a job runs with so much of what it needs, 0 to 1.
inline double speed_with(uint32_t milli, uint32_t need_milli) {
  return need_milli == 0 || milli >= need_milli ? 1 : static_cast<double>(milli) / need_milli;
}

}  // namespace tierpilot::sharing
