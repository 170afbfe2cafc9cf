// Who shares a unit, and what that leaves of whose speed.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "policies/sharing/live/needed_share.h"
#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

inline constexpr double kLeastRetained = 0.8;  // of anybody's speed, or they are kept apart

class Neighbours {
 public:
  // `jobs` are all on one unit.
  Neighbours(const Retained& retained, std::span<const LiveJob> jobs)
      : retained_(retained), jobs_(jobs) {}

  // What the others on the unit leave of a model's speed.
  double retained(const std::string& model, uint64_t self) const {
    double product = 1;
    if (retained_)
      for (const auto& other : jobs_)
        if (other.id != self) product *= retained_(model, other.model);
    return product;
  }
  // One more leaves enough speed to all, itself included: each keeps most of its own, and what its
  // promise needs.
  bool bear(const std::string& model, double needed) const {
    if (!retained_) return true;
    if (retained(model, 0) < std::max(kLeastRetained, needed)) return false;
    return std::all_of(jobs_.begin(), jobs_.end(),
                       [&](const LiveJob& job) { return bears(job, model); });
  }
  // The best-effort job that has to go first if one more with a promise comes: it slows that one or
  // another promise too much, or would itself be slowed too much. Null: there is none.
  const LiveJob* in_the_way(const LiveJob& newcomer, double needed) const {
    if (!retained_) return nullptr;
    if (retained(newcomer.model, newcomer.id) < std::max(kLeastRetained, needed))
      return slowest_neighbour(newcomer);
    for (const auto& job : jobs_) {
      if (bears(job, newcomer.model)) continue;
      if (job.job_class == JobClass::kBestEffort) return &job;
      if (const auto* worst = slowest_neighbour(job)) return worst;
    }
    return nullptr;
  }
  // The best-effort job that slows it the most; null: none does.
  const LiveJob* slowest_neighbour(const LiveJob& job) const {
    const LiveJob* worst = nullptr;
    double least = 1;
    for (const auto& other : jobs_) {
      if (!retained_ || other.id == job.id || other.job_class != JobClass::kBestEffort) continue;
      const double kept = retained_(job.model, other.model);
      if (kept >= least) continue;
      least = kept;
      worst = &other;
    }
    return worst;
  }

 private:
  // One that is there, one more.
  bool bears(const LiveJob& job, const std::string& newcomer) const {
    return retained(job.model, job.id) * retained_(job.model, newcomer) >=
           std::max(kLeastRetained, needed_speed(job.left_upper_s, job.promise_left_s));
  }

  const Retained& retained_;
  std::span<const LiveJob> jobs_;
};

}  // namespace tierpilot::sharing
