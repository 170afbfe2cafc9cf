// Best-effort jobs that turn out to slow each other go apart.
#include <gtest/gtest.h>

#include <cmath>

#include "policies/sharing/live/share_policy.h"

namespace tierpilot::sharing {
namespace {

LiveJob best_effort(uint64_t id, double unsaved_s, bool takes_checkpoints = true) {
  LiveJob job;
  job.id = id;
  job.job_class = JobClass::kBestEffort;
  job.need_milli = job.share.milli = 300;
  job.takes_checkpoints = takes_checkpoints;
  job.unsaved_s = unsaved_s;
  return job;
}

// Each keeps `part` of its speed beside another one.
std::vector<uint64_t> preempted(double part, std::vector<LiveJob> jobs, uint32_t measured = 1) {
  const Retained retained = [part, measured](const Sharer&, const Sharer&) {
    return Kept{.ln = std::log(part), .by = KeptBy::kPair, .measured = measured};
  };
  const auto policy = *make_share_policy("share", retained);
  std::vector<uint64_t> ids;
  for (const auto& each : policy->adjust({"cpu", {kWholeUnit, 0}, std::move(jobs)}).preempted)
    ids.push_back(each.job);
  return ids;
}

TEST(Parting, WhoTogetherDoLessThanOneAfterTheOtherGoApart) {
  EXPECT_EQ(preempted(0.4, {best_effort(1, 50), best_effort(2, 5)}), std::vector<uint64_t>{2})
      << "whose checkpoint is the newest";
}

TEST(Parting, WhoDoMoreTogetherStay) {
  EXPECT_TRUE(preempted(0.6, {best_effort(1, 50), best_effort(2, 5)}).empty());
  EXPECT_TRUE(preempted(0.1, {best_effort(1, 50)}).empty()) << "it is alone";
}

TEST(Parting, NobodyEndsForItWhoWouldBeginAnew) {
  EXPECT_TRUE(preempted(0.4, {best_effort(1, 50, false), best_effort(2, 5, false)}).empty());
}

TEST(Parting, WhatIsOnlyPredictedPartsNobody) {
  EXPECT_TRUE(preempted(0.4, {best_effort(1, 50), best_effort(2, 5)}, 0).empty());
}

// The other one saves its work meanwhile.
TEST(Parting, WhoeverLeavesAlreadyIsEnough) {
  auto leaving = best_effort(1, 50);
  leaving.leaves = true;
  EXPECT_TRUE(preempted(0.4, {leaving, best_effort(2, 1)}).empty());
}

// It has little of the unit while a promise needs the rest: that is lent, and no reason to end.
TEST(Parting, ASmallShareBesideAPromiseIsNoReason) {
  LiveJob promised = best_effort(1, 50);
  promised.job_class = JobClass::kLatencySensitive;
  promised.need_milli = promised.share.milli = 900;
  promised.left_s = promised.left_upper_s = 100;
  promised.promise_left_s = 1000;
  auto small = best_effort(2, 1);
  small.share.milli = 30;
  EXPECT_TRUE(preempted(0.8, {promised, small}).empty());
}

// Of three that each keep a little over half beside one other, two do as much.
TEST(Parting, AsManyStayAsDoTheMost) {
  EXPECT_EQ(preempted(0.55, {best_effort(1, 3), best_effort(2, 1), best_effort(3, 2)}).size(), 1u);
}

}  // namespace
}  // namespace tierpilot::sharing
