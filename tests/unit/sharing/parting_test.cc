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
std::vector<uint64_t> preempted(double part, std::vector<LiveJob> jobs) {
  const auto policy = *make_share_policy(
      "share", [part](const Sharer&, const Sharer&) { return Kept{.ln = std::log(part)}; });
  return policy->adjust({"cpu", {kWholeUnit, 0}, std::move(jobs)}).preempted;
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

// Of three that each keep a little over half beside one other, two do as much.
TEST(Parting, AsManyStayAsDoTheMost) {
  EXPECT_EQ(preempted(0.55, {best_effort(1, 3), best_effort(2, 1), best_effort(3, 2)}).size(), 1u);
}

}  // namespace
}  // namespace tierpilot::sharing
