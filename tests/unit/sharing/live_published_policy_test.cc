// `share-published`: what it starts, what it ends for that, and whom it gives more.
#include "policies/sharing/live/published_policy.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "tests/unit/sharing/live_scene.h"

namespace tierpilot::sharing {
namespace {

LiveUnit of_4_gib(std::vector<LiveJob> jobs, std::vector<uint64_t> gib_halves) {
  auto unit = unit_with(std::move(jobs));
  unit.whole.memory_bytes = 4 * kGiB;
  for (size_t i = 0; i < unit.jobs.size(); ++i)
    unit.jobs[i].share.memory_bytes = gib_halves[i] * kGiB / 2;
  return unit;
}

WaitingJob of_2_gib(JobClass job_class) {
  auto job = waiting(job_class, 500, 10);
  job.predicted["cpu"].memory_bytes = 2 * kGiB;
  return job;
}

TEST(LivePolicy, PublishedStartsNobodyWithoutMemory) {
  const auto unit =
      of_4_gib({running(1, kSensitive, 100, 100), running(2, kBestEffort, 900, 900)}, {6, 1});
  EXPECT_FALSE(policy("share-published")->place({{unit}}, of_2_gib(kSensitive)));
}

TEST(LivePolicy, PublishedTakesTheMostFreeThatHasTheMemory) {
  const std::vector<LiveNode> nodes{{of_4_gib({running(1, kBestEffort, 100, 100)}, {8}),
                                     of_4_gib({running(2, kBestEffort, 300, 300)}, {0})}};
  for (const auto job_class : {kBestEffort, kSensitive}) {
    const auto start = policy("share-published")->place(nodes, of_2_gib(job_class));
    ASSERT_TRUE(start);
    EXPECT_EQ(start->unit, 1U);
    EXPECT_TRUE(start->preempted.empty());
  }
}

TEST(LivePolicy, PublishedEndsAsManyAsHoldTheMemory) {
  const auto unit =
      of_4_gib({running(1, kBestEffort, 600, 600), running(2, kBestEffort, 300, 300)}, {2, 6});
  const auto start = policy("share-published")->place({{unit}}, of_2_gib(kSensitive));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->preempted, (std::vector<uint64_t>{1, 2}));
  EXPECT_FALSE(policy("share-published")->place({{unit}}, of_2_gib(kBestEffort)));
  const auto idle = of_4_gib({running(1, kBestEffort, 100, 100)}, {8});
  const auto other = policy("share-published")->place({{idle}}, of_2_gib(kSensitive));
  ASSERT_TRUE(other) << "it has the compute, not the memory";
  EXPECT_EQ(other->preempted, (std::vector<uint64_t>{1}));
}

TEST(LivePolicy, PublishedTakesTheMostFreeAndPreemptsForTheSensitive) {
  const std::vector<LiveNode> nodes{{unit_with({running(1, kBestEffort, 700, 700)}),
                                     unit_with({running(2, kBestEffort, 400, 400)})}};
  const auto easy = policy("share-published")->place(nodes, waiting(kBestEffort, 500, 10));
  ASSERT_TRUE(easy);
  EXPECT_EQ(easy->unit, 1U);
  EXPECT_TRUE(easy->preempted.empty());
  EXPECT_FALSE(policy("share-published")->place(nodes, waiting(kBestEffort, 900, 10)));
  const auto hard = policy("share-published")->place(nodes, waiting(kSensitive, 900, 10, 20));
  ASSERT_TRUE(hard);
  EXPECT_EQ(hard->preempted.size(), 1U);
}

TEST(LivePolicy, PublishedGrowsByATenthFromBestEffortJobs) {
  auto late = running(1, kSensitive, 400, 800);
  late.elapsed_s = 90;
  late.left_s = 30;  // at half speed a minute
  late.promise_left_s = 30;
  const auto unit = unit_with({late, running(2, kBestEffort, 600, 600)});
  const auto adjustment = policy("share-published")->adjust(unit);
  EXPECT_EQ(milli_of(unit, adjustment, 1), 500U);
  EXPECT_EQ(milli_of(unit, adjustment, 2), 500U);
  EXPECT_TRUE(adjustment.preempted.empty());
}

// At full share half as fast as alone by its neighbours: it misses its promise though no share is
// missing.
TEST(LivePolicy, PublishedSeesInTheLeftTimeWhoIsSlowed) {
  auto slowed = running(1, kSensitive, 800, 800);
  slowed.elapsed_s = 40;
  slowed.left_s = 30;
  slowed.promise_left_s = 40;
  EXPECT_TRUE(policy("share-published")->adjust(unit_with({slowed})).milli.empty());
  slowed.kept = 0.5;
  const auto unit = unit_with({slowed});
  EXPECT_EQ(milli_of(unit, policy("share-published")->adjust(unit), 1), 900U);
}

}  // namespace
}  // namespace tierpilot::sharing
