#include "policies/sharing/live/trial.h"

#include <gtest/gtest.h>

namespace tierpilot::sharing {
namespace {

std::unique_ptr<SharePolicy> share() {
  return std::move(*make_share_policy("share", {}));
}

LiveUnit alone() {
  return {"cpu", {kWholeUnit, 0}, {}};
}

// Predicted to run for 100 s.
WaitingJob coming(double promise_s, double run_upper_s = 140) {
  WaitingJob job;
  job.id = 1;
  job.job_class = JobClass::kLatencySensitive;
  job.predicted["cpu"] = {.milli = 900, .run_s = 100, .run_upper_s = run_upper_s};
  job.promise_left_s = promise_s;
  return job;
}

OnTrial running(double elapsed_s, double left_s, double promise_left_s, bool shows_pace) {
  OnTrial trial;
  trial.job.id = 1;
  trial.job.job_class = JobClass::kLatencySensitive;
  trial.job.need_milli = 900;
  trial.job.share.milli = 900;
  trial.job.elapsed_s = elapsed_s;
  trial.job.predicted_s = 100;
  trial.job.left_s = left_s;
  trial.job.left_upper_s = left_s * (shows_pace ? 1.1 : 1.4);
  trial.job.promise_left_s = promise_left_s;
  trial.shows_pace = shows_pace;
  return trial;
}

TrialVerdict verdict(const OnTrial& trial) {
  auto unit = alone();
  unit.jobs.push_back(hoped(trial.job));
  return review(*share(), unit, trial);
}

TEST(Trial, WhatIsRefusedForItsUncertaintyIsAdmittedAsItIsHoped) {
  const auto job = coming(120);
  EXPECT_FALSE(share()->admit({{alone()}}, {}, job).admitted);
  EXPECT_TRUE(share()->admit({{alone()}}, {}, hoped(job)).admitted);
  EXPECT_FALSE(share()->admit({{alone()}}, {}, hoped(coming(90))).admitted)
      << "it takes longer than that as predicted";
}

TEST(Trial, APromiseIsMadeOnceThePaceTellsThatItIsKept) {
  EXPECT_EQ(verdict(running(10, 90, 110, true)), TrialVerdict::kMade);
  EXPECT_EQ(verdict(running(10, 90, 110, false)), TrialVerdict::kGoesOn) << "nothing tells it yet";
}

TEST(Trial, APromiseThatCannotBeKeptIsNotMade) {
  EXPECT_EQ(verdict(running(10, 120, 110, true)), TrialVerdict::kNotMade);
  EXPECT_EQ(verdict(running(10, 120, 110, false)), TrialVerdict::kNotMade);
}

// Its pace says that it may be late: 105 s of 110, and a tenth more is possible.
TEST(Trial, GoesOnWhileItIsNotCertainButNotForLong) {
  EXPECT_EQ(verdict(running(10, 105, 110, true)), TrialVerdict::kGoesOn);
  EXPECT_EQ(verdict(running(26, 105, 110, true)), TrialVerdict::kNotMade);
  EXPECT_EQ(verdict(running(26, 70, 110, false)), TrialVerdict::kNotMade)
      << "it tells no iterations";
}

TEST(Trial, TheStartIsNotCounted) {
  auto trial = running(40, 105, 110, true);
  trial.job.predicted_s = 130;
  trial.start_s = 30;
  EXPECT_EQ(verdict(trial), TrialVerdict::kGoesOn);
  trial.job.elapsed_s = 56;
  EXPECT_EQ(verdict(trial), TrialVerdict::kNotMade);
  auto starting = running(40, 70, 110, false);
  starting.job.start_left_s = 1;
  starting.start_s = 5;
  EXPECT_EQ(verdict(starting), TrialVerdict::kGoesOn);
  starting.job.elapsed_s = 101;
  EXPECT_EQ(verdict(starting), TrialVerdict::kNotMade) << "it loads for longer than it should run";
}

// Nine tenths of the unit are another promise's.
TEST(Trial, APromiseIsMadeBesideThoseThatWereMade) {
  auto trial = running(10, 90, 110, true);
  auto unit = alone();
  unit.jobs.push_back(hoped(trial.job));
  LiveJob other = trial.job;
  other.id = 2;
  other.left_s = other.left_upper_s = 1000;
  other.promise_left_s = 1100;
  unit.jobs.push_back(other);
  EXPECT_NE(review(*share(), unit, trial), TrialVerdict::kMade);
  unit.jobs.back().job_class = JobClass::kBestEffort;
  unit.jobs.back().promise_left_s = kNoPromise;
  EXPECT_EQ(review(*share(), unit, trial), TrialVerdict::kMade) << "best-effort jobs give way";
}

TEST(Trial, IsHopelessWhenNotEvenThePredictedRunIsLeft) {
  EXPECT_FALSE(is_hopeless(coming(101)));
  EXPECT_TRUE(is_hopeless(coming(99)));
  auto job = coming(99);
  job.predicted["fast"] = {.milli = 900, .run_s = 50, .run_upper_s = 60};
  EXPECT_FALSE(is_hopeless(job)) << "on another type it is kept";
}

// One job has no promise, or none any more, and comes first; the other needs nearly all.
TEST(Trial, WhatHasNoPromiseTakesNothingFromOneThatWasMade) {
  auto unit = alone();
  auto without = running(50, 100, kNoPromise, true).job, with = running(50, 90, 100, true).job;
  with.id = 2;
  with.need_milli = 800;
  unit.jobs = {without, with};
  const auto adjustment = share()->adjust(unit);
  uint32_t milli = with.share.milli;
  for (const auto& [id, given] : adjustment.milli)
    if (id == 2) milli = given;
  EXPECT_GE(milli, 800u);
}

// The trial's job came first and turns out to need more than was predicted.
TEST(Trial, ATrialTakesNothingFromAPromiseThatWasMade) {
  LiveUnit unit = alone();
  auto on_trial = hoped(running(10, 100, 110, true).job), made = running(10, 50, 55, true).job;
  made.id = 2;
  made.need_milli = 600;
  unit.jobs = {on_trial, made};
  const auto adjustment = share()->adjust(unit);
  uint32_t milli = made.share.milli;
  for (const auto& [id, given] : adjustment.milli)
    if (id == 2) milli = given;
  EXPECT_GE(milli, 600u);
}

TEST(Trial, IsOverAlsoWhereNothingTellsTheRun) {
  auto trial = running(20, 0, 80, false);
  trial.job.predicted_s = 0;
  EXPECT_EQ(verdict(trial), TrialVerdict::kGoesOn);
  trial.job.elapsed_s = 40;
  EXPECT_EQ(verdict(trial), TrialVerdict::kNotMade);
}

}  // namespace
}  // namespace tierpilot::sharing
