#include "policies/sim/sharing/time_bound.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "policies/sim/sharing/time_report.h"

namespace tierpilot::sharing {
namespace {

TimedJob promised(uint64_t id, double arrival_s, uint32_t milli, double run_s, double promise_s) {
  TimedJob job;
  job.id = id;
  job.arrival_s = arrival_s;
  job.job_class = JobClass::kLatencySensitive;
  job.need_milli = milli;
  job.run_s = run_s;
  job.promise_s = promise_s;
  return job;
}

TimedWorkload on_units(uint32_t units, std::vector<TimedJob> jobs) {
  TimedWorkload workload;
  workload.units = units;
  workload.jobs = std::move(jobs);
  return workload;
}

TEST(TimeBound, APromiseShorterThanTheRunIsKeptByNobody) {
  const auto bound =
      bound_of(on_units(4, {promised(1, 0, 100, 100, 99), promised(2, 0, 100, 100, 100)}));
  EXPECT_EQ(bound.asked, 2U);
  EXPECT_EQ(bound.kept, 1U);
}

// Room for the two short ones, or for the long one.
TEST(TimeBound, WhereUnitsDoNotSufficeTheLongestAreGivenUp) {
  const std::vector<TimedJob> jobs{promised(1, 0, 1000, 190, 200), promised(2, 0, 1000, 100, 200),
                                   promised(3, 0, 1000, 95, 200)};
  EXPECT_EQ(bound_of(on_units(1, jobs)).kept, 2U);
  EXPECT_EQ(bound_of(on_units(2, jobs)).kept, 3U);
}

TEST(TimeBound, PartsOfAUnitAreSideBySide) {
  std::vector<TimedJob> jobs;
  for (uint64_t id = 1; id <= 5; ++id) jobs.push_back(promised(id, 0, 250, 100, 110));
  EXPECT_EQ(bound_of(on_units(1, jobs)).kept, 4U);
}

TEST(TimeBound, WhatIsLostAtDifferentTimesAddsUp) {
  std::vector<TimedJob> jobs;
  for (uint64_t hour = 0; hour < 3; ++hour)
    for (uint64_t i = 1; i <= 2; ++i)
      jobs.push_back(promised(2 * hour + i, 3600.0 * static_cast<double>(hour), 1000, 100, 150));
  EXPECT_EQ(bound_of(on_units(1, jobs)).kept, 3U);
}

// In its 900 s before the other one comes it did half a unit's work at most; all together would fit
// into the time from its arrival on.
TEST(TimeBound, AJobCannotHurryBeforeAnotherComes) {
  const auto early = promised(1, 0, 500, 1000, 1010);
  EXPECT_EQ(bound_of(on_units(1, {early, promised(2, 900, 1000, 100, 105)})).kept, 1U);
  EXPECT_EQ(bound_of(on_units(1, {early, promised(2, 900, 1000, 50, 105)})).kept, 2U);
}

TEST(TimeBound, OnlyTypesThatWillDoCount) {
  auto workload = on_units(3, {promised(1, 0, 1000, 100, 150), promised(2, 0, 1000, 100, 150)});
  workload.types = {"T4", "A10"};
  workload.type_of = {0, 1, 1};
  workload.jobs[0].types = workload.jobs[1].types = 1;
  EXPECT_EQ(bound_of(workload).kept, 1U);
  workload.jobs[1].types = 3;
  EXPECT_EQ(bound_of(workload).kept, 2U);
}

TEST(TimeBound, AJobOfSeveralUnitsHasOnePromise) {
  auto first = promised(1, 0, 1000, 100, 150), second = promised(2, 0, 1000, 100, 150);
  first.first_part = second.first_part = 1;
  EXPECT_EQ(bound_of(on_units(2, {first, second})).kept, 1U);
  const auto one = bound_of(on_units(1, {first, second}));
  EXPECT_EQ(one.asked, 1U);
  EXPECT_EQ(one.kept, 0U);
}

TEST(TimeBound, NothingAskedIsNothingKept) {
  TimedJob best_effort;
  best_effort.run_s = 70;
  const auto bound = bound_of(on_units(1, {best_effort}));
  EXPECT_EQ(bound.asked, 0U);
  EXPECT_EQ(bound.kept, 0U);
  EXPECT_NEAR(bound.best_effort_mean_s, 70, 0.01);
}

TEST(TimeBound, BestEffortWorkIsThatOfWhoRunsAtOnceAndNoMoreThanUnitsDo) {
  TimedJob early, late;
  early.need_milli = 500;
  early.run_s = 40;
  late.need_milli = 1000;
  late.run_s = late.arrival_s = 100;
  EXPECT_NEAR(bound_of(on_units(2, {early, late})).best_effort_units, 0.2, 1e-9);
  early.run_s = 400;
  std::vector<TimedJob> many(6, early);
  many.push_back(late);
  EXPECT_NEAR(bound_of(on_units(2, many)).best_effort_units, 2, 1e-9);
}

// One unit and jobs that fill it: by Dertouzos some can all be done in time exactly if between each
// arrival and each end no more is to be done of those that come and end there.
bool can_all_be_kept(const std::vector<TimedJob>& jobs) {
  for (const auto& from : jobs)
    for (const auto& to : jobs) {
      const double begin_s = from.arrival_s, end_s = to.arrival_s + to.promise_s;
      double sum_s = 0;
      for (const auto& job : jobs)
        if (job.arrival_s >= begin_s && job.arrival_s + job.promise_s <= end_s) sum_s += job.run_s;
      if (sum_s > end_s - begin_s && sum_s > 0) return false;
    }
  return true;
}

uint32_t most_kept(const std::vector<TimedJob>& jobs) {
  uint32_t most = 0;
  for (uint32_t set = 0; set < (1U << jobs.size()); ++set) {
    std::vector<TimedJob> some;
    for (size_t i = 0; i < jobs.size(); ++i)
      if ((set >> i & 1) != 0) some.push_back(jobs[i]);
    if (some.size() > most && can_all_be_kept(some)) most = static_cast<uint32_t>(some.size());
  }
  return most;
}

TEST(TimeBound, IsNotBelowTheBestOfAllSchedulesAndOftenIsIt) {
  SeededRandom random(3);
  int same = 0;
  constexpr int kScenes = 300;
  for (int scene = 0; scene < kScenes; ++scene) {
    std::vector<TimedJob> jobs;
    for (uint64_t id = 1; id <= 8; ++id) {
      const double run_s = 10 + random.unit() * 90;
      jobs.push_back(
          promised(id, 200 * random.unit(), 1000, run_s, run_s * (1 + 2 * random.unit())));
    }
    const auto bound = bound_of(on_units(1, jobs)).kept, best = most_kept(jobs);
    ASSERT_GE(bound, best) << "scene " << scene;
    same += bound == best ? 1 : 0;
  }
  EXPECT_GT(same, kScenes / 2);
}

// Drawn jobs, and jobs of lists that want several units and types, from light loads to far too
// much: nobody keeps more, or has best-effort jobs done sooner.
TEST(TimeBound, NoPolicyIsBetter) {
  uint32_t less_than_asked = 0, runs = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const TimedSettings settings{.units = 3,
                                 .jobs = 60,
                                 .load = 0.3 * static_cast<double>(seed),
                                 .sensitive_part = 0.4 + 0.07 * static_cast<double>(seed)};
    const auto list = jobs_of_pods(generate_pods(seed, 4, 80), "made").value();
    for (const JobSource* source : {static_cast<const JobSource*>(nullptr), &list}) {
      for (const auto& policy : timed_policies()) {
        const auto run = run_timed(policy, seed, settings, {.period_part = 0.002}, source);
        const auto bound = bound_of(workload_for(policy, seed, settings, source));
        ASSERT_TRUE(run) << policy;
        ASSERT_EQ(run->asked, bound.asked);
        ASSERT_LE(run->kept, bound.kept) << policy << ", seed " << seed;
        ASSERT_GE(run->best_effort_mean_s, bound.best_effort_mean_s) << policy;
        ASSERT_LE(run->best_effort_units, bound.best_effort_units * (1 + 1e-6)) << policy;
        ++runs;
        less_than_asked += bound.kept < bound.asked ? 1 : 0;
      }
    }
  }
  EXPECT_GT(less_than_asked, runs / 3) << "else it says nothing";
}

TEST(TimeBound, WhereThereIsRoomWhoKnowsAllIsCloseToIt) {
  for (const auto policy : {kClairvoyant, kAskedAlike}) {
    uint32_t kept = 0, bound = 0;
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const TimedSettings light{.units = 16, .jobs = 80, .load = 0.4};
      kept += run_timed(policy, seed, light, {})->kept;
      bound += bound_of(workload_for(policy, seed, light, nullptr)).kept;
    }
    EXPECT_LE(kept, bound) << policy;
    EXPECT_GE(kept, 0.97 * bound) << policy;
  }
}

TEST(TimeReport, HasABoundThatNoRowIsAbove) {
  TimedSuite suite{.policies = {"whole", "share", std::string(kClairvoyant)},
                   .seeds = 2,
                   .first_seed = 2001,
                   .settings = {.units = 4, .jobs = 80, .load = 1.5},
                   .rules = {},
                   .progress = {}};
  const auto value = run_timed_suite(suite);
  ASSERT_TRUE(value) << value.error().message;
  const auto& bounds = (*value)["bounds"];
  ASSERT_EQ(bounds.size(), 2U);
  EXPECT_EQ(bounds[0]["policy"], "bound");
  for (const auto& row : (*value)["policies"]) {
    const auto& bound = bounds[row["policy"] == kClairvoyant ? 1 : 0];
    EXPECT_EQ(row["jobs"], bound["jobs"]);
    EXPECT_LE(row["promises_kept_of_asked"], bound["promises_kept_of_asked"]);
    EXPECT_GE(row["best_effort_completion_s"], bound["best_effort_completion_s"]);
  }
  EXPECT_LT(bounds[0]["promises_kept_of_asked"], bounds[1]["promises_kept_of_asked"])
      << "by the truth nobody asks for a promise that is shorter than the run";
}

TEST(TimeReport, TellsNoPartOfWhatThereWasNoneOf) {
  TimedSuite suite{.policies = {"whole"},
                   .seeds = 2,
                   .first_seed = 2001,
                   .settings = {.units = 4, .jobs = 10, .sensitive_part = 0},
                   .rules = {},
                   .progress = {}};
  const auto only_best_effort = run_timed_suite(suite);
  ASSERT_TRUE(only_best_effort);
  const auto& row = (*only_best_effort)["policies"][0];
  for (const char* key : {"promises_kept_of_made", "promises_kept_of_made_least", "promises_made",
                          "promises_made_on_trial", "promises_kept_of_asked"})
    EXPECT_TRUE(row[key].is_null()) << key << ' ' << row[key];
  EXPECT_TRUE((*only_best_effort)["bounds"][0]["promises_kept_of_asked"].is_null());
  EXPECT_TRUE(row["best_effort_completion_s"].is_number());
  suite.settings.sensitive_part = 1;
  const auto none_of_it = run_timed_suite(suite);
  ASSERT_TRUE(none_of_it);
  const auto& other = (*none_of_it)["policies"][0];
  EXPECT_TRUE(other["promises_made"].is_number());
  EXPECT_TRUE(other["best_effort_completion_s"].is_null()) << other["best_effort_completion_s"];
}

}  // namespace
}  // namespace tierpilot::sharing
