// Who shares a unit, and what that leaves of whose speed.
#pragma once

#include <algorithm>
#include <optional>
#include <span>

#include "policies/sharing/live/needed_share.h"
#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

inline constexpr double kLeastKept = 0.7;  // of anybody's speed, or they are kept apart
// Of a unit: who uses less takes less of others' speeds, in proportion, unless it was measured.
inline constexpr double kHardlyMilli = 100;
// By which one more has to raise the sum of speeds on a unit: else one after the other is as well.
inline constexpr double kLeastGain = 0.3;

// For a promise.
struct Needed {
  double speed = 0;  // as a part of the full one; 0: there is no promise
  double upper = 1;  // by which its run may last longer than predicted, see upper_ratio()
};

// What is left of a job's speed beside one other.
inline Kept kept_beside(const Retained& retained, const Sharer& victim, const Sharer& neighbour) {
  auto kept = retained(victim, neighbour);
  if (kept.by == KeptBy::kPair || !(neighbour.milli > 0)) return kept;
  const double part = std::min(1.0, neighbour.milli / kHardlyMilli);
  kept.ln *= part;
  kept.variance *= part * part;
  return kept;
}

inline bool is_enough(const Kept& kept, const Needed& needed) {
  return kept.part() >= kLeastKept && kept.lower_beside(needed.upper) >= needed.speed;
}

inline Needed needed_by(const LiveJob& job) {
  return {needed_speed(job.left_upper_s, job.promise_left_s), upper_ratio(job)};
}

// Who would keep too little of its speed.
struct NotBorne {
  uint64_t job = 0;  // 0: the newcomer
  Kept kept;
  Needed needed;
};

class Neighbours {
 public:
  // `jobs` are all on one unit.
  Neighbours(const Retained& retained, std::span<const LiveJob> jobs)
      : retained_(retained), jobs_(jobs) {}

  // What the others on the unit leave of a job's speed.
  Kept kept(const Sharer& job, uint64_t self) const {
    Kept product;
    if (retained_)
      for (const auto& other : jobs_)
        if (other.id != self) product = product * beside(job, other.sharer);
    return product;
  }
  Kept kept(const LiveJob& job) const { return kept(job.sharer, job.id); }
  // The same with one more.
  Kept kept(const LiveJob& job, const Sharer& newcomer) const {
    return retained_ ? kept(job) * beside(job.sharer, newcomer) : Kept{};
  }
  // What one more adds to the sum of speeds on the unit, each as a part of what it has alone, if
  // its share alone leaves it `speed`: its own less what the others lose.
  double gain(const Sharer& newcomer, double speed) const {
    double sum = speed * kept(newcomer, 0).part();
    if (!retained_) return sum;
    for (const auto& job : jobs_)
      sum -= speed_with(job.share.milli, job.usable_milli()) * kept(job).part() *
             (1 - beside(job.sharer, newcomer).part());
    return sum;
  }
  // One more has to leave enough speed to all, itself included: each keeps most of its own and, as
  // far as one can be certain, what its promise needs. Who would not; nothing: it may come.
  std::optional<NotBorne> not_borne(const Sharer& newcomer, const Needed& needed) const {
    if (!retained_) return std::nullopt;
    if (const auto own = kept(newcomer, 0); !is_enough(own, needed))
      return NotBorne{0, own, needed};
    for (const auto& job : jobs_)
      if (const auto left = kept(job, newcomer); !is_enough(left, needed_by(job)))
        return NotBorne{job.id, left, needed_by(job)};
    return std::nullopt;
  }
  // The best-effort job that has to go first if one more with a promise comes: it slows that one or
  // another promise too much, or would itself be slowed too much. Null: there is none.
  const LiveJob* in_the_way(const LiveJob& newcomer, const Needed& needed) const {
    if (!retained_) return nullptr;
    if (!is_enough(kept(newcomer), needed)) return slowest_neighbour(newcomer, &Kept::lower);
    for (const auto& job : jobs_) {
      if (bears(job, newcomer.sharer)) continue;
      if (job.job_class == JobClass::kBestEffort) return &job;
      if (const auto* worst = slowest_neighbour(job, &Kept::lower)) return worst;
    }
    return nullptr;
  }
  // The best-effort job that leaves it the least; null: none takes anything. A pair that nobody
  // measured may lose what its lower bound says, though its middle loses nothing.
  const LiveJob* slowest_neighbour(const LiveJob& job, double (Kept::*left)() const) const {
    const LiveJob* worst = nullptr;
    double least = 1;
    for (const auto& other : jobs_) {
      if (!retained_ || other.id == job.id || other.job_class != JobClass::kBestEffort) continue;
      const double kept = (beside(job.sharer, other.sharer).*left)();
      if (kept >= least) continue;
      least = kept;
      worst = &other;
    }
    return worst;
  }

 private:
  Kept beside(const Sharer& victim, const Sharer& neighbour) const {
    return kept_beside(retained_, victim, neighbour);
  }
  // One that is there, one more.
  bool bears(const LiveJob& job, const Sharer& newcomer) const {
    return is_enough(kept(job, newcomer), needed_by(job));
  }

  const Retained& retained_;
  std::span<const LiveJob> jobs_;
};

}  // namespace tierpilot::sharing
