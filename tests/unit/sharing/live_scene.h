// Units with jobs on them, for tests of what policies decide in time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {

inline constexpr auto kSensitive = JobClass::kLatencySensitive;
inline constexpr auto kBestEffort = JobClass::kBestEffort;

inline std::unique_ptr<SharePolicy> policy(std::string_view name, Retained retained = {}) {
  return std::move(*make_share_policy(name, std::move(retained)));
}

inline LiveJob running(uint64_t id, JobClass job_class, uint32_t milli, uint32_t need) {
  LiveJob job;
  job.id = id;
  job.job_class = job_class;
  job.share.milli = milli;
  job.need_milli = need;
  return job;
}

inline LiveUnit unit_with(std::vector<LiveJob> jobs) {
  return {"cpu", {kWholeUnit, 0}, std::move(jobs)};
}

inline WaitingJob waiting(JobClass job_class, uint32_t milli, double run_s,
                          double promise_s = kNoPromise) {
  WaitingJob job;
  job.id = 100;
  job.job_class = job_class;
  job.predicted["cpu"] = {milli, 0, run_s, run_s};
  job.promise_left_s = promise_s;
  return job;
}

inline uint32_t milli_of(const LiveUnit& unit, const Adjustment& adjustment, uint64_t id) {
  for (const auto& [job, milli] : adjustment.milli)
    if (job == id) return milli;
  for (const auto& job : unit.jobs)
    if (job.id == id) return job.share.milli;
  return 0;
}

inline void expect_within(const LiveUnit& unit, const Adjustment& adjustment) {
  uint32_t sum = 0;
  for (const auto& job : unit.jobs)
    if (!adjustment.preempts(job.id)) sum += milli_of(unit, adjustment, job.id);
  EXPECT_LE(sum, unit.whole.milli);
}

}  // namespace tierpilot::sharing
