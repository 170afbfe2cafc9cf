#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "policies/sharing/live/taking.h"
#include "tests/unit/sharing/live_scene.h"

namespace tierpilot::sharing {
namespace {

TEST(LivePolicy, OnlyKnownNamesAreMade) {
  for (const auto& name : share_policies().names()) EXPECT_TRUE(make_share_policy(name, {}));
  const auto unknown = make_share_policy("best", {});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("share-published"), std::string::npos);
}

TEST(LivePolicy, WholeSharesNoUnit) {
  const std::vector<LiveNode> nodes{
      {unit_with({running(1, kBestEffort, 1000, 200)}), unit_with({})}};
  const auto start = policy("whole")->place(nodes, waiting(kBestEffort, 200, 10));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->unit, 1U);
  EXPECT_EQ(start->share.milli, 1000U);
}

TEST(LivePolicy, ShareFillsUnitsBeforeItOpensOthers) {
  const std::vector<LiveNode> nodes{
      {unit_with({}), unit_with({running(1, kBestEffort, 600, 600)})}};
  const auto start = policy("share")->place(nodes, waiting(kBestEffort, 300, 10));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->unit, 1U);
}

TEST(LivePolicy, ShareKeepsApartWhoSlowEachOther) {
  const Retained retained = [](const Sharer&, const Sharer&) { return Kept{std::log(0.5)}; };
  const std::vector<LiveNode> nodes{{unit_with({running(1, kBestEffort, 300, 300)})}};
  EXPECT_FALSE(policy("share", retained)->place(nodes, waiting(kBestEffort, 300, 10)));
  EXPECT_TRUE(policy("share")->place(nodes, waiting(kBestEffort, 300, 10)));
}

TEST(LivePolicy, ShareShrinksBestEffortJobsForAPromise) {
  const std::vector<LiveNode> nodes{{unit_with({running(1, kBestEffort, 900, 900)})}};
  const auto start = policy("share")->place(nodes, waiting(kSensitive, 600, 10, 12));
  ASSERT_TRUE(start);
  EXPECT_TRUE(start->preempted.empty());
  ASSERT_EQ(start->shrunk.size(), 1U);
  EXPECT_LE(start->shrunk.front().second + start->share.milli, 1000U);
}

TEST(LivePolicy, ShareGrowsWhoWouldMissAndGivesBackWhatNobodyMisses) {
  auto late = running(1, kSensitive, 300, 900);
  late.left_s = late.left_upper_s = 50;
  late.promise_left_s = 60;
  auto unit = unit_with({late, running(2, kBestEffort, 700, 700)});
  auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_GE(milli_of(unit, adjustment, 1), 780U);  // 50 of 60 s, with the margin
  EXPECT_LT(milli_of(unit, adjustment, 2), 300U);
  unit.jobs[0].share.milli = 900;
  unit.jobs[0].promise_left_s = 600;
  unit.jobs[1].share.milli = 100;
  adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_EQ(milli_of(unit, adjustment, 2), 700U);
  EXPECT_GE(milli_of(unit, adjustment, 1), 79U);
}

TEST(LivePolicy, SharePreemptsWhoLosesLeast) {
  auto late = running(1, kSensitive, 200, 950);
  late.left_s = late.left_upper_s = 60;
  late.promise_left_s = 60;
  auto saved = running(2, kBestEffort, 400, 400), unsaved = running(3, kBestEffort, 400, 400);
  saved.takes_checkpoints = unsaved.takes_checkpoints = true;
  saved.unsaved_s = 1;
  unsaved.unsaved_s = 50;
  auto filler = running(4, kSensitive, 0, 0);
  const auto unit = unit_with({late, saved, unsaved, filler});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  ASSERT_FALSE(adjustment.preempted.empty());
  EXPECT_TRUE(adjustment.preempts(2));
}

// It was started with what was left, and is predicted to use a little more.
TEST(LivePolicy, ShareEndsNobodyForWhatItStartedItWith) {
  const auto unit = unit_with({running(1, kSensitive, 922, 922), running(2, kBestEffort, 76, 83)});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_TRUE(adjustment.preempted.empty());
  EXPECT_GE(milli_of(unit, adjustment, 2), 76U);
}

// It needs 200 thousandths later and loads for three seconds on all of the unit first: with only
// 200 that takes fifteen.
TEST(LivePolicy, ShareHurriesAStartThatAPromiseDependsOn) {
  auto starts = running(1, kSensitive, 200, 200);
  starts.start_left_s = 3;
  starts.left_s = starts.left_upper_s = 13;
  starts.promise_left_s = 26;
  const auto unit = unit_with({starts, running(2, kBestEffort, 800, 800)});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_GT(milli_of(unit, adjustment, 1), 300U);
  EXPECT_TRUE(adjustment.preempted.empty());
}

TEST(LivePolicy, ShareIsLessAheadOfPromisesBeforeItEndsAnybody) {
  auto ahead = running(1, kSensitive, 600, 1000);
  ahead.left_s = ahead.left_upper_s = 65;
  ahead.promise_left_s = 100;
  const auto unit = unit_with({ahead, running(2, kBestEffort, 400, 400)});
  const auto adjustment = policy("share")->adjust(unit);
  expect_within(unit, adjustment);
  EXPECT_TRUE(adjustment.preempted.empty());
  EXPECT_GE(milli_of(unit, adjustment, 1), 685U) << "no promise is broken for it";
  EXPECT_GE(milli_of(unit, adjustment, 2), kLeastMilli);
}

// Who runs has all of the unit and needs a third of it for its promise.
TEST(LivePolicy, ShareTakesWhatOthersHaveAboveTheirPromises) {
  auto ahead = running(1, kSensitive, 900, 900);
  ahead.left_s = ahead.left_upper_s = 30;
  ahead.promise_left_s = 150;
  const std::vector<LiveNode> nodes{{unit_with({ahead, running(2, kBestEffort, 100, 400)})}};
  const auto start = policy("share")->place(nodes, waiting(kSensitive, 500, 30, 60));
  ASSERT_TRUE(start);
  EXPECT_TRUE(start->preempted.empty());
  EXPECT_GE(start->share.milli, 250U);
  ASSERT_EQ(start->shrunk.size(), 1U);
  EXPECT_EQ(start->shrunk.front().first, 1U);
  EXPECT_GE(start->shrunk.front().second, 180U) << "its own promise is kept";
  EXPECT_LE(start->shrunk.front().second + start->share.milli + 100, 1000U);
}

// 500 thousandths are left; to be well ahead of its promise it would need more.
TEST(LivePolicy, ShareStartsWhoCanKeepItsPromiseRatherThanWait) {
  auto other = running(1, kSensitive, 500, 500);
  other.left_s = other.left_upper_s = 57;
  other.promise_left_s = 60;
  const std::vector<LiveNode> nodes{{unit_with({other})}};
  const auto start = policy("share")->place(nodes, waiting(kSensitive, 500, 55, 60));
  ASSERT_TRUE(start);
  EXPECT_GE(start->share.milli, 480U);
}

TEST(LivePolicy, SharePromisesNoStartThatThereIsNoRoomFor) {
  auto ahead = running(1, kSensitive, 700, 700);
  ahead.left_s = ahead.left_upper_s = 80;
  ahead.promise_left_s = 100;
  const std::vector<LiveNode> nodes{{unit_with({ahead})}};
  auto job = waiting(kSensitive, 200, 20, 30);
  EXPECT_TRUE(policy("share")->admit(nodes, {}, job).admitted);
  job.predicted["cpu"].start_s = 5;
  EXPECT_FALSE(policy("share")->admit(nodes, {}, job).admitted)
      << "five seconds on all of a unit are seventeen with three tenths";
}

TEST(LivePolicy, SharePromisesOnlyWhatItCanKeep) {
  auto ahead = running(1, kSensitive, 800, 800);
  ahead.left_s = ahead.left_upper_s = 80;
  ahead.promise_left_s = 100;
  const std::vector<LiveNode> nodes{{unit_with({ahead})}};
  const auto share = policy("share");
  EXPECT_TRUE(share->admit(nodes, {}, waiting(kSensitive, 500, 10, 200)).admitted);
  const auto refused = share->admit(nodes, {}, waiting(kSensitive, 500, 100, 110));
  EXPECT_FALSE(refused.admitted);
  EXPECT_GT(refused.earliest_s, 110);
  EXPECT_TRUE(
      share->admit(nodes, {}, waiting(kSensitive, 500, 100, refused.earliest_s + 1)).admitted);
  const auto unknown = share->admit(nodes, {}, waiting(kSensitive, 500, 0, 200));
  EXPECT_FALSE(unknown.admitted);
  EXPECT_NE(unknown.reason.find("not known"), std::string::npos);
}

// The unit has room, but not for somebody who would slow the other below what it promised.
TEST(LivePolicy, SharePromisesNoPlaceBesideWhoBearsNobody) {
  const Retained retained = [](const Sharer&, const Sharer&) { return Kept{std::log(0.5)}; };
  auto there = running(1, kSensitive, 300, 300);
  there.left_s = there.left_upper_s = 80;
  there.promise_left_s = 200;
  const std::vector<LiveNode> nodes{{unit_with({there})}};
  const auto job = waiting(kSensitive, 300, 10, 100);
  ASSERT_FALSE(policy("share", retained)->place(nodes, job)) << "they are kept apart";
  const auto refused = policy("share", retained)->admit(nodes, {}, job);
  EXPECT_FALSE(refused.admitted);
  EXPECT_GE(refused.earliest_s, 120 + 10)
      << "the other is as far ahead of its promise as it is kept";
  EXPECT_LT(refused.earliest_s, 200);
  EXPECT_TRUE(policy("share")->admit(nodes, {}, job).admitted);
}

TEST(LivePolicy, ThoseAheadThatBearNobodyAreCounted) {
  const Retained retained = [](const Sharer&, const Sharer&) { return Kept{std::log(0.5)}; };
  const std::vector<LiveNode> nodes{{unit_with({})}};
  auto first = waiting(kSensitive, 100, 100, 200);
  first.id = 99;
  EXPECT_FALSE(policy("share", retained)
                   ->admit(nodes, {first}, waiting(kSensitive, 100, 100, 200))
                   .admitted);
  EXPECT_TRUE(policy("share")->admit(nodes, {first}, waiting(kSensitive, 100, 100, 200)).admitted);
}

// The best-effort job would be slowed too much; the promise is not.
TEST(LivePolicy, SharePreemptsWhoCannotBearAPromise) {
  const Retained retained = [](const Sharer& job, const Sharer&) {
    return Kept{job.name == "frail" ? std::log(0.5) : 0.0};
  };
  auto frail = running(1, kBestEffort, 300, 300);
  frail.sharer.name = "frail";
  frail.takes_checkpoints = true;
  const std::vector<LiveNode> nodes{{unit_with({frail})}};
  auto job = waiting(kSensitive, 300, 10, 20);
  job.sharer.name = "robust";
  const auto start = policy("share", retained)->place(nodes, job);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->preempted, std::vector<uint64_t>{1});
  job.job_class = kBestEffort;
  EXPECT_FALSE(policy("share", retained)->place(nodes, job));
}

// All fits on either; beside the first it would keep three quarters, beside the second nearly all.
TEST(LivePolicy, ShareTakesTheUnitWhereTheSumOfSpeedsIsBest) {
  const Retained retained = [](const Sharer& job, const Sharer& other) {
    return Kept{std::log(job.name == "rough" || other.name == "rough" ? 0.75 : 0.97)};
  };
  auto rough = running(1, kBestEffort, 600, 600), calm = running(2, kBestEffort, 300, 300);
  rough.sharer.name = "rough";
  const std::vector<LiveNode> nodes{{unit_with({rough}), unit_with({calm})}};
  const auto start = policy("share", retained)->place(nodes, waiting(kBestEffort, 300, 10));
  ASSERT_TRUE(start);
  EXPECT_EQ(start->unit, 1U) << "though the first would be left fuller";
  EXPECT_EQ(policy("share")->place(nodes, waiting(kBestEffort, 300, 10))->unit, 0U);
}

// It would get half of what it needs and keep four fifths of that, and cost the other a fifth.
TEST(LivePolicy, ShareWaitsWhereOneAfterTheOtherIsAsFast) {
  const Retained fifth = [](const Sharer&, const Sharer&) { return Kept{std::log(0.8)}; };
  const std::vector<LiveNode> nodes{{unit_with({running(1, kBestEffort, 600, 600)})}};
  EXPECT_FALSE(policy("share", fifth)->place(nodes, waiting(kBestEffort, 800, 10)));
  EXPECT_TRUE(policy("share", fifth)->place(nodes, waiting(kBestEffort, 400, 10)));
  EXPECT_TRUE(policy("share")->place(nodes, waiting(kBestEffort, 800, 10)));
}

// Alone it would be as fast later, but not in time.
TEST(LivePolicy, APromiseIsNotKeptWaitingForThat) {
  const Retained fifth = [](const Sharer&, const Sharer&) { return Kept{std::log(0.8)}; };
  auto there = running(1, kSensitive, 600, 600);
  const std::vector<LiveNode> nodes{{unit_with({there})}};
  EXPECT_FALSE(policy("share", fifth)->place(nodes, waiting(kSensitive, 800, 10)));
  EXPECT_TRUE(policy("share", fifth)->place(nodes, waiting(kSensitive, 800, 10, 45)));
}

TEST(LivePolicy, APromiseCountsWhatIsNotCertainOfASlowDown) {
  const auto sure = [](double variance) -> Retained {
    return [variance](const Sharer&, const Sharer&) { return Kept{std::log(0.9), variance}; };
  };
  auto there = running(1, kSensitive, 300, 300);
  there.left_s = there.left_upper_s = 80;
  there.promise_left_s = 400;
  const std::vector<LiveNode> nodes{{unit_with({there})}};
  const auto job = waiting(kSensitive, 300, 100, 130);
  EXPECT_TRUE(policy("share", sure(0))->admit(nodes, {}, job).admitted);
  const auto refused = policy("share", sure(0.04))->admit(nodes, {}, job);
  EXPECT_FALSE(refused.admitted);
  EXPECT_GT(refused.earliest_s, 130);
}

TEST(LivePolicy, WhoMayBeSlowedMoreGetsMoreForItsPromise) {
  const auto sure = [](double variance) -> Retained {
    return [variance](const Sharer&, const Sharer&) { return Kept{std::log(0.9), variance}; };
  };
  auto promised = running(1, kSensitive, 500, 900);
  promised.left_s = promised.left_upper_s = 50;
  promised.promise_left_s = 150;
  const auto unit = unit_with({promised, running(2, kBestEffort, 500, 900)});
  const auto certain = policy("share", sure(0))->adjust(unit);
  const auto unsure = policy("share", sure(0.04))->adjust(unit);
  expect_within(unit, unsure);
  EXPECT_GT(milli_of(unit, unsure, 1), milli_of(unit, certain, 1) + 100);
}

// Both are not far off at once.
TEST(Kept, WhatIsUncertainTwiceIsNotAddedUp) {
  const Kept kept{std::log(0.9), 0.01};
  EXPECT_NEAR(kept.lower(), 0.9 * std::exp(-0.1645), 1e-3);
  EXPECT_GT(kept.lower_beside(1.4), kept.lower());
  EXPECT_LT(kept.lower_beside(1.4), kept.part());
  EXPECT_LE((Kept{0.5, 0.01}).part(), 1);
}

TEST(LivePolicy, ThoseAheadAreCounted) {
  const std::vector<LiveNode> nodes{{unit_with({})}};
  const auto job = waiting(kSensitive, 900, 100, 130);
  EXPECT_TRUE(policy("share")->admit(nodes, {}, job).admitted);
  EXPECT_FALSE(policy("share")->admit(nodes, {job}, job).admitted);
}

TEST(Taking, TakesInProportionWhileThatIsEnough) {
  const auto unit = unit_with({running(1, kBestEffort, 500, 500), running(2, kBestEffort, 300, 300),
                               running(3, kSensitive, 200, 200)});
  const auto some = take_from_best_effort(unit, 300, 100);
  EXPECT_EQ(some.milli, 300U);
  EXPECT_TRUE(some.preempted.empty());
  EXPECT_EQ(some.left, (std::vector<std::pair<uint64_t, uint32_t>>{{1, 300}, {2, 200}}));
  const auto all = take_from_best_effort(unit, 750, 100);
  EXPECT_EQ(all.milli, 800U);
  EXPECT_EQ(all.preempted.size(), 2U);
}

// It gets what there is, as one without a promise would.
TEST(LivePolicy, WhosePromiseIsPastSavingDoesNotWaitForMore) {
  auto other = running(1, kSensitive, 300, 300);
  other.left_s = other.left_upper_s = 100;
  other.promise_left_s = 120;
  const std::vector<LiveNode> nodes{{unit_with({other})}};
  const auto late = waiting(kSensitive, 1000, 10, 5);
  const auto start = policy("share")->place(nodes, late);
  ASSERT_TRUE(start);
  EXPECT_EQ(start->share.milli, 700U);
}

}  // namespace
}  // namespace tierpilot::sharing
