// What is not certain breaks no promise that `share` has made: pairs that nobody measured, runs
// whose length nobody knows, neighbours that hardly do anything.
#include <gtest/gtest.h>

#include <cmath>

#include "policies/sharing/live/needed_share.h"
#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {
namespace {

constexpr auto kSensitive = JobClass::kLatencySensitive;
constexpr auto kBestEffort = JobClass::kBestEffort;

// As for cores before any pair was measured: nothing lost in the middle, a quarter not ruled out.
Kept not_sure(const Sharer&, const Sharer&) {
  Kept kept;
  kept.variance = 0.19 * 0.19;
  return kept;
}

LiveJob running(uint64_t id, JobClass job_class, uint32_t milli, double use_milli) {
  LiveJob job;
  job.id = id;
  job.job_class = job_class;
  job.share.milli = job.need_milli = milli;
  job.sharer.name = "j" + std::to_string(id);
  job.sharer.milli = use_milli;
  job.elapsed_s = 10;
  return job;
}

WaitingJob waiting(uint32_t milli, double run_upper_s, double promise_s) {
  WaitingJob job;
  job.id = 100;
  job.job_class = kSensitive;
  job.sharer.name = "w";
  job.sharer.milli = milli;
  job.predicted["cpu"] = {milli, 0, run_upper_s / 1.5, run_upper_s};
  job.promise_left_s = promise_s;
  return job;
}

class CertainPromises : public ::testing::Test {
 protected:
  std::optional<Start> place_beside(const LiveJob& other, const WaitingJob& job) {
    return share_->place({{LiveUnit{"cpu", {kWholeUnit, 0}, {other}}}}, job);
  }
  Admission admit_beside(const std::vector<LiveJob>& there, const WaitingJob& job,
                         const std::vector<WaitingJob>& ahead = {}) {
    return alone_->admit({{LiveUnit{"cpu", {kWholeUnit, 0}, there}}}, ahead, job);
  }

  std::unique_ptr<SharePolicy> share_ = std::move(*make_share_policy("share", not_sure));
  std::unique_ptr<SharePolicy> alone_ = std::move(*make_share_policy("share", {}));
};

TEST_F(CertainPromises, WhatIsPromisedBesideABestEffortJobStarts) {
  const auto other = running(1, kBestEffort, 1000, 1000);
  for (double promise_s = 24; promise_s < 60; promise_s += 1) {
    const auto job = waiting(1000, 22.5, promise_s);
    const std::vector<LiveNode> nodes{{LiveUnit{"cpu", {kWholeUnit, 0}, {other}}}};
    ASSERT_TRUE(share_->admit(nodes, {}, job).admitted) << promise_s;
    EXPECT_TRUE(share_->place(nodes, job)) << promise_s;
  }
}

TEST_F(CertainPromises, WhoHardlyDoesAnythingEndsForNobody) {
  auto sleeper = running(1, kBestEffort, 100, 5);
  sleeper.need_milli = 10;
  const auto start = place_beside(sleeper, waiting(1000, 7.5, 8.2));
  ASSERT_TRUE(start);
  EXPECT_TRUE(start->preempted.empty());
  // Nor later.
  auto promised = running(2, kSensitive, start->share.milli, 1000);
  promised.need_milli = kWholeUnit;
  promised.left_s = 5;
  promised.left_upper_s = 7.5;
  promised.promise_left_s = 8.2;
  sleeper.share.milli = 10;
  const auto later = share_->adjust({"cpu", {kWholeUnit, 0}, {sleeper, promised}});
  EXPECT_TRUE(later.preempted.empty());
  // Where the promise needs all of it, it has all of it.
  promised.promise_left_s = 7.6;
  EXPECT_FALSE(share_->adjust({"cpu", {kWholeUnit, 0}, {sleeper, promised}}).preempted.empty());
}

TEST_F(CertainPromises, NobodyIsToldToWaitForWhatMayNeverEnd) {
  auto holder = running(1, kSensitive, 1000, 1000);
  const auto job = waiting(1000, 6, 15);
  const auto refused = admit_beside({holder}, job);
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.earliest_s, 0) << "nobody knows when";
  EXPECT_NE(refused.reason.find("how long"), std::string::npos) << refused.reason;
  holder.left_upper_s = 5;
  EXPECT_TRUE(admit_beside({holder}, job).admitted);
  // What was promised and is late tells no more than that.
  holder.promise_left_s = -3;
  holder.left_upper_s = 0;
  EXPECT_FALSE(admit_beside({holder}, job).admitted);
}

TEST_F(CertainPromises, WhoeverIsAheadForAnUnknownTimeMayTakeAllOfIt) {
  auto unknown = waiting(1000, 0, kNoPromise);
  EXPECT_FALSE(admit_beside({}, waiting(1000, 6, 15), {unknown}).admitted);
  unknown.predicted["cpu"].milli = 300;
  EXPECT_TRUE(admit_beside({}, waiting(600, 6, 15), {unknown}).admitted)
      << "beside it there is room";
}

}  // namespace
}  // namespace tierpilot::sharing
