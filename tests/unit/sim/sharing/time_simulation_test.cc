#include "policies/sim/sharing/time_simulation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "policies/sim/sharing/pace_learning.h"
#include "policies/sim/sharing/time_report.h"
#include "policies/sim/sharing/timed_policies.h"

namespace tierpilot::sharing {
namespace {

TimedJob job(uint64_t id, double arrival_s, JobClass job_class, uint32_t milli, double run_s) {
  TimedJob job;
  job.id = id;
  job.arrival_s = arrival_s;
  job.job_class = job_class;
  job.need_milli = job.asked_milli = milli;
  job.run_s = run_s;
  job.predicted = {milli, 0, run_s, run_s};
  return job;
}

TimedWorkload workload(uint32_t units, std::vector<TimedJob> jobs, double retained = 1) {
  TimedWorkload workload;
  workload.units = units;
  workload.jobs = std::move(jobs);
  workload.retained.assign(size_t{kModels} * kModels, retained);
  workload.retained_predicted = workload.retained;
  return workload;
}

TimedRun run(std::string_view policy, const TimedWorkload& jobs) {
  auto made = make_share_policy(policy, {});
  return simulate_timed(jobs, **made, {});
}

constexpr auto kSensitive = JobClass::kLatencySensitive;
constexpr auto kBestEffort = JobClass::kBestEffort;

TEST(TimeSimulation, WholeUnitsRunOneAfterTheOther) {
  const auto done = run(
      "whole", workload(1, {job(1, 0, kBestEffort, 400, 100), job(2, 0, kBestEffort, 400, 100)}));
  EXPECT_NEAR(done.makespan_s, 200, 1);
  EXPECT_NEAR(done.best_effort_mean_s, 150, 1);
}

TEST(TimeSimulation, SharedUnitsRunBothAtOnce) {
  const auto jobs =
      workload(1, {job(1, 0, kBestEffort, 400, 100), job(2, 0, kBestEffort, 400, 100)});
  EXPECT_NEAR(run("share", jobs).makespan_s, 100, 1);
  EXPECT_NEAR(run("share-published", jobs).makespan_s, 100, 1);
}

TEST(TimeSimulation, NeighboursSlowEachOther) {
  const auto jobs =
      workload(1, {job(1, 0, kBestEffort, 400, 100), job(2, 0, kBestEffort, 400, 100)}, 0.5);
  const auto done = run("share-published", jobs);
  EXPECT_NEAR(done.makespan_s, 200, 1);
  EXPECT_NEAR(done.slowed, 0.5, 0.01);
}

TEST(TimeSimulation, APromiseIsKeptInThePlaceOfABestEffortJob) {
  auto promised = job(2, 10, kSensitive, 900, 100);
  promised.promise_s = 130;
  const auto jobs = workload(1, {job(1, 0, kBestEffort, 1000, 1000), promised});
  const auto done = run("share", jobs);
  EXPECT_EQ(done.asked, 1u);
  EXPECT_EQ(done.made, 1u);
  EXPECT_EQ(done.kept, 1u);
  const auto whole = run("whole", jobs);
  EXPECT_EQ(whole.made, 1u);
  EXPECT_EQ(whole.kept, 0u);
}

// Of its 1,000 s it does 10 twice.
TEST(TimeSimulation, WhatIsDoneAgainIsNoMoreWork) {
  auto promised = job(2, 10, kSensitive, 1000, 100);
  promised.promise_s = 120;
  const auto done = run("share", workload(1, {job(1, 0, kBestEffort, 1000, 1000), promised,
                                              job(3, 2000, kBestEffort, 100, 10)}));
  EXPECT_EQ(done.preemptions, 1u);
  EXPECT_NEAR(done.lost_s, 10, 0.1);
  EXPECT_NEAR(done.best_effort_units * 2000, 1000, 1);
}

// The first one takes ten times as long as was predicted, so that the second one cannot begin in
// time; then nobody else's promise suffers for it.
TEST(TimeSimulation, ABrokenPromiseDoesNotGoBeforeOneThatCanBeKept) {
  auto slow = job(1, 0, kSensitive, 1000, 1000), broken = job(2, 1, kSensitive, 1000, 100);
  slow.predicted.run_s = slow.predicted.run_upper_s = 100;
  broken.promise_s = 300;
  auto late = job(3, 900, kSensitive, 1000, 100);
  late.promise_s = 250;
  const auto done = run("share", workload(1, {slow, broken, late}));
  EXPECT_EQ(done.made, 2u);
  EXPECT_EQ(done.kept, 1u);
}

// Nobody needs more than the twentieth part of a unit.
TEST(TimeSimulation, AsManyStartAtOnceAsThereIsRoomFor) {
  std::vector<TimedJob> jobs;
  for (uint64_t id = 1; id <= 100; ++id) jobs.push_back(job(id, 0, kBestEffort, 50, 100));
  EXPECT_NEAR(run("share", workload(5, jobs)).best_effort_mean_s, 100, 1);
}

TEST(TimeSimulation, WhoNeverRunsIsCounted) {
  auto jobs = workload(1, {job(1, 0, kBestEffort, 300, 100), job(2, 0, kBestEffort, 300, 100)});
  jobs.jobs[0].types = 0;
  const auto done = run("share", jobs);
  EXPECT_EQ(done.not_ended, 1u);
  EXPECT_NEAR(done.best_effort_mean_s, 100, 1);
  EXPECT_EQ(run("share", workload(1, {jobs.jobs[1]})).not_ended, 0u);
}

// The same jobs, whose paces are measured otherwise.
TEST(TimeSimulation, EachSeedHasErrorsOfItsOwn) {
  const TimedSettings small{.units = 6, .jobs = 200};
  const auto run_with = [&](uint64_t seed) {
    auto jobs = generate_timed(3, small);
    jobs.seed = seed;
    auto policy = make_share_policy("share", {});
    return simulate_timed(jobs, **policy, {.trials = true, .pace_noise = 0.5}).best_effort_mean_s;
  };
  EXPECT_EQ(run_with(3), run_with(3));
  EXPECT_NE(run_with(3), run_with(4));
  EXPECT_NE(generate_timed(3, small).seed, generate_timed(4, small).seed);
}

TEST(TimeSimulation, WhatCannotBeKeptIsNotPromised) {
  auto promised = job(1, 0, kSensitive, 900, 100);
  promised.promise_s = 50;
  const auto done = run("share", workload(1, {promised, job(2, 1, kBestEffort, 100, 10)}));
  EXPECT_EQ(done.asked, 1u);
  EXPECT_EQ(done.made, 0u);
}

// One promise for both parts, which two units keep and one does not.
TEST(TimeSimulation, AJobOfSeveralUnitsHasOnePromise) {
  auto first = job(1, 0, kSensitive, 1000, 100), second = job(2, 0, kSensitive, 1000, 100);
  first.first_part = second.first_part = 1;
  first.promise_s = second.promise_s = 150;
  const auto two = run("share", workload(2, {first, second}));
  EXPECT_EQ(two.asked, 1u);
  EXPECT_EQ(two.made, 1u);
  EXPECT_EQ(two.kept, 1u);
  const auto one = run("share", workload(1, {first, second}));
  EXPECT_EQ(one.asked, 1u);
  EXPECT_EQ(one.made, 0u);
  const auto late = run("whole", workload(1, {first, second}));
  EXPECT_EQ(late.made, 1u);
  EXPECT_EQ(late.kept, 0u) << "it is done when its last part is";
}

TEST(TimeSimulation, JobsRunOnTypesThatWillDo) {
  auto first = job(1, 0, kBestEffort, 300, 100), second = job(2, 0, kBestEffort, 900, 100);
  auto jobs = workload(2, {first, second});
  jobs.types = {"T4", "A10"};
  jobs.type_of = {0, 1};
  jobs.jobs[0].types = jobs.jobs[1].types = 2;
  for (const char* policy : {"whole", "best-fit", "share-published"})
    EXPECT_NEAR(run(policy, jobs).makespan_s, 200, 1) << policy;
  jobs.jobs[1].types = kAnyModel;
  EXPECT_NEAR(run("whole", jobs).makespan_s, 100, 1);
}

TEST(TimeSimulation, AJobThatNoUnitWillDoForDoesNotHoldTheOthersUp) {
  auto jobs = workload(1, {job(1, 0, kBestEffort, 300, 100), job(2, 0, kBestEffort, 300, 100)});
  jobs.jobs[0].types = 0;
  TimedRules rules;
  rules.period_part = 0.002;
  auto policy = make_share_policy("share", {});
  EXPECT_NEAR(simulate_timed(jobs, **policy, rules).makespan_s, 100, 1);
}

// As many as are looked at wait for the one type of unit, while the other one is idle.
TEST(TimeSimulation, ThoseWhoWaitForOneTypeHideNobodyFromAnother) {
  auto jobs = workload(2, {job(1, 0, kSensitive, 1000, 1000)});
  for (uint64_t id = 2; id <= 80; ++id) jobs.jobs.push_back(job(id, 1, kSensitive, 1000, 10));
  for (auto& each : jobs.jobs) each.types = 1;
  auto promised = job(81, 2, kSensitive, 400, 100);
  promised.promise_s = 200;
  jobs.jobs.push_back(promised);
  jobs.jobs.push_back(job(82, 3, kBestEffort, 400, 100));
  jobs.types = {"T4", "A10"};
  jobs.type_of = {0, 1};
  const auto done = run("share", jobs);
  EXPECT_EQ(done.made, 1u);
  EXPECT_EQ(done.kept, 1u);
  EXPECT_NEAR(done.best_effort_mean_s, 100, 5);
}

// The one that came before it takes ten times as long as predicted.
TEST(TimeSimulation, WhoHasAPromiseIsLookedAtBeforeThoseThatHaveNone) {
  auto without = job(2, 1, kSensitive, 1000, 3000), promised = job(3, 2, kSensitive, 1000, 100);
  without.predicted.run_s = without.predicted.run_upper_s = 300;
  promised.promise_s = 600;
  const auto done =
      run("share", workload(1, {job(1, 0, kSensitive, 1000, 100), without, promised}));
  EXPECT_EQ(done.made, 1u);
  EXPECT_EQ(done.kept, 1u);
}

// It keeps two thirds of its speed where nine tenths are thought, and has to keep five sixths.
TEST(TimeSimulation, WhoSlowsAPromiseMoreThanThoughtIsNotPreemptedWithoutEnd) {
  auto promised = job(1, 0, kSensitive, 400, 1000);
  promised.promise_s = 1250;
  const auto jobs = workload(1, {promised, job(2, 20, kBestEffort, 400, 300)}, 0.67);
  const Thought thought{[](const Sharer&, const Sharer&) { return Kept{.ln = std::log(0.9)}; },
                        nullptr};
  auto policy = make_share_policy("share", thought.retained);
  const auto done = simulate_timed(jobs, **policy, {}, thought);
  EXPECT_EQ(done.kept, 1u);
  EXPECT_GE(done.preemptions, 1u);
  EXPECT_LE(done.preemptions, 3u);
}

TEST(TimeSimulation, NoJobsAreDoneAtOnce) {
  EXPECT_EQ(run("share", workload(1, {})).makespan_s, 0);
}

// Half a year of one run is not looked at every ten seconds; nothing else comes of it.
TEST(TimeSimulation, LooksThatAreFewerWithLongRunsChangeLittle) {
  const TimedSettings small{.units = 8, .jobs = 200};
  double kept = 0, kept_by_part = 0;
  for (const char* policy : {"share", "share-published"})
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      TimedRules rules;
      kept += run_timed(policy, seed, small, rules)->kept;
      rules.period_part = kTracePeriodPart;
      kept_by_part += run_timed(policy, seed, small, rules)->kept;
    }
  EXPECT_NEAR(kept, kept_by_part, 0.01 * kept);
}

// Nobody is there between these runs: the first look after it is no later than the change.
TEST(TimeSimulation, TimeGoesOnAfterAQuietTime) {
  const auto jobs =
      workload(1, {job(1, 0, kBestEffort, 1000, 100), job(2, 50'000, kBestEffort, 1000, 100),
                   job(3, 60'000, kBestEffort, 1000, 100)});
  TimedRules rules;
  rules.period_part = kTracePeriodPart;
  auto policy = make_share_policy("share", {});
  const auto done = simulate_timed(jobs, **policy, rules);
  EXPECT_NEAR(done.makespan_s, 60'100, 1);
  EXPECT_NEAR(done.used * 60'000, 200, 1);
  EXPECT_NEAR(done.given * 60'000, 200, 1);
}

TEST(TimeSimulation, OneSeedGivesOneResult) {
  const TimedSettings small{.units = 6, .jobs = 80};
  const auto once = run_timed("share", 3, small, {}), again = run_timed("share", 3, small, {});
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->makespan_s, again->makespan_s);
  EXPECT_EQ(once->kept, again->kept);
  EXPECT_NE(run_timed("share", 4, small, {})->makespan_s, once->makespan_s);
}

// What holds for the full suite, on a small one with seeds of its own.
TEST(TimeSimulation, SharesKeepMorePromisesAndDoMoreThanWholeUnits) {
  TimedSuite suite{.policies = {"whole", "share"},
                   .seeds = 3,
                   .first_seed = 2001,
                   .settings = {.units = 8, .jobs = 160},
                   .rules = {},
                   .progress = {}};
  const auto value = run_timed_suite(suite);
  ASSERT_TRUE(value) << value.error().message;
  const auto row = [&](const char* name) {
    for (const auto& each : (*value)["policies"])
      if (each["policy"] == name) return each;
    return nlohmann::ordered_json();
  };
  const auto whole = row("whole"), share = row("share");
  EXPECT_GT(share["promises_kept_of_made"].get<double>(),
            whole["promises_kept_of_made"].get<double>());
  EXPECT_GT(share["promises_kept_of_made"].get<double>(), 0.9);
  EXPECT_LT(share["best_effort_completion_s"].get<double>(),
            whole["best_effort_completion_s"].get<double>());
  EXPECT_LT(share["given_minus_used"].get<double>(), whole["given_minus_used"].get<double>());
}

// Nothing of the truth reaches the policy: what is predicted of pairs is for others.
TEST(TimeSimulation, ShareLearnsFromPacesAlone) {
  auto settings = TimedSettings{.units = 6, .jobs = 80};
  const auto once = run_timed("share", 3, settings, {});
  settings.retained_error = 0.5;
  const auto again = run_timed("share", 3, settings, {});
  ASSERT_TRUE(once && again);
  EXPECT_EQ(once->makespan_s, again->makespan_s);
  EXPECT_NE(run_timed(kForetold, 3, settings, {})->makespan_s, once->makespan_s);
}

TEST(TimeSimulation, WhatIsLearnedKeepsPromisesThatElseAreBroken) {
  const TimedSettings small{.units = 8, .jobs = 200};
  TimedRun learned, unaware;
  for (uint64_t seed = 2001; seed <= 2003; ++seed) {
    const auto one = run_timed("share", seed, small, {}),
               other = run_timed(kUnaware, seed, small, {});
    ASSERT_TRUE(one && other);
    learned.kept += one->kept;
    learned.made += one->made;
    learned.slowed += one->slowed;
    unaware.kept += other->kept;
    unaware.made += other->made;
    unaware.slowed += other->slowed;
  }
  EXPECT_GT(learned.kept, 0.95 * learned.made);
  EXPECT_LT(unaware.kept, 0.9 * unaware.made);
  EXPECT_LT(learned.slowed, 0.7 * unaware.slowed);
}

// All pairs keep six tenths; the prior says that they keep nearly all.
TEST(PaceLearning, PacesTellWhatNeighboursTake) {
  auto jobs =
      workload(1, {job(1, 0, kBestEffort, 300, 2000), job(2, 400, kBestEffort, 300, 2000)}, 0.6);
  jobs.jobs[1].model = 1;
  Interference learns(core_pair_prior(), measured_gpu_prior());
  PaceLearning learning(learns, 10, 0.03, 1);
  RunningJobs running(jobs, {}, 30, 15);
  running.start({.job = &jobs.jobs[0], .milli = 300, .left_s = 2000});
  running.set_speeds();
  learning.changed(0, running, 0);
  for (double now_s = 10; now_s <= 400; now_s += 10) learning.looked(0, running, now_s);
  running.start({.job = &jobs.jobs[1], .milli = 300, .left_s = 2000, .started_s = 400});
  running.set_speeds();
  learning.changed(0, running, 400);
  const Sharer one{.name = model_name(0), .on = UnitKind::kGpu},
      other{.name = model_name(1), .on = UnitKind::kGpu};
  const double before = learns.beside(one, other).part();
  for (double now_s = 410; now_s <= 600; now_s += 10) learning.looked(0, running, now_s);
  const auto kept = learns.beside(one, other);
  EXPECT_GT(before, 0.9);
  EXPECT_NEAR(kept.part(), 0.6, 0.08);
  EXPECT_EQ(kept.measured, 1U);
  EXPECT_EQ(learns.beside(other, one).by, KeptBy::kPrior) << "it was never seen alone";
}

TEST(TimeSimulation, AnUnknownPolicyIsNamed) {
  const auto run = run_timed("best", 1, {}, {});
  ASSERT_FALSE(run);
  EXPECT_EQ(run.error().code, ErrorCode::kNotFound);
  EXPECT_NE(run.error().message.find("'best'"), std::string::npos);
  for (const auto& known : timed_policies())
    EXPECT_NE(run.error().message.find(known), std::string::npos) << known;
}

// Predictions are off by as much as was measured. With trials more promises are made, nearly all of
// them kept, and none of those that were made at once is lost for it.
TEST(TimeSimulation, TrialsMakePromisesThatArePredictedTooUncertainly) {
  TimedRun with, without;
  for (uint64_t seed = 2001; seed <= 2002; ++seed) {
    const auto one = run_timed(kOnTrial, seed, {}, {}), other = run_timed("share", seed, {}, {});
    ASSERT_TRUE(one && other);
    EXPECT_EQ(one->asked, other->asked);
    with.asked += one->asked;
    with.made += one->made;
    with.made_on_trial += one->made_on_trial;
    with.kept += one->kept;
    without.made += other->made;
  }
  EXPECT_GT(with.made_on_trial, 0u);
  EXPECT_GT(with.made, without.made);
  EXPECT_GT(with.made, 0.93 * with.asked);
  EXPECT_GT(with.kept, 0.97 * with.made);
}

// Ten times what was predicted: nothing can be promised, and what was only hoped is not counted.
TEST(TimeSimulation, AJobThatTakesTooLongGetsNoPromiseOnTrial) {
  auto late = job(1, 0, kSensitive, 900, 1000);
  late.predicted.run_s = 100;
  late.predicted.run_upper_s = 140;
  late.promise_s = 120;
  TimedRules rules;
  rules.trials = true;
  auto policy = make_share_policy("share", {});
  const auto done = simulate_timed(workload(1, {late}), **policy, rules);
  EXPECT_EQ(done.asked, 1u);
  EXPECT_EQ(done.made, 0u);
  EXPECT_EQ(done.kept, 0u);
  auto in_time = late;
  in_time.run_s = 90;
  const auto kept = simulate_timed(workload(1, {in_time}), **policy, rules);
  EXPECT_EQ(kept.made_on_trial, 1u);
  EXPECT_EQ(kept.kept, 1u);
}

}  // namespace
}  // namespace tierpilot::sharing
