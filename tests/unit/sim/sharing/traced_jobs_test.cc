#include "policies/sim/sharing/traced_jobs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "policies/sim/sharing/time_report.h"

namespace tierpilot::sharing {
namespace {

const std::filesystem::path kTraceDir = TRACES;

JobSource source_of(uint32_t jobs, uint32_t gpus = 1, uint32_t asked_milli = kWholeUnit) {
  JobSource source;
  source.name = "made";
  for (uint32_t i = 0; i < jobs; ++i)
    source.jobs.push_back({i * 100.0, 400, gpus, asked_milli, std::nullopt, kAnyModel});
  return source;
}

JobSource generated(uint64_t seed, uint32_t nodes, uint32_t pods) {
  return jobs_of_pods(generate_pods(seed, nodes, pods), "generated").value();
}

TEST(TracedJobs, DemandIsWhatArrivalsMeet) {
  auto workload = timed_workload(source_of(1), 1, {});
  auto job = workload.jobs.front();
  job.need_milli = 500;
  job.run_s = 100;
  auto later = job;
  later.arrival_s = job.arrival_s + 50;
  auto after = job;
  after.arrival_s = job.arrival_s + 100;
  EXPECT_DOUBLE_EQ(met_demand({job}), 0.5);
  EXPECT_DOUBLE_EQ(met_demand({job, later, after}), 0.5 * (1 + 2 + 2) / 3);
  EXPECT_EQ(met_demand({}), 0);
}

TEST(TracedJobs, TimesAreTheTracesAndTheLoadIsAsAsked) {
  const auto source = source_of(2000);
  for (const double load : {0.2, 0.5}) {
    const auto workload = timed_workload(source, 1, {.jobs = 2000, .load = load});
    ASSERT_EQ(workload.jobs.size(), 2000U);
    EXPECT_NEAR(met_demand(workload.jobs) / workload.units, load, 0.5 * load / workload.units);
    for (size_t i = 0; i < 2000; ++i) {
      EXPECT_EQ(workload.jobs[i].arrival_s, source.jobs[i].arrival_s);
      EXPECT_EQ(workload.jobs[i].run_s, 400);
    }
  }
}

TEST(TracedJobs, FewerJobsNeedFewerUnits) {
  const auto source = source_of(4000);
  const auto all = timed_workload(source, 1, {.jobs = 4000, .load = 0.1});
  const auto some = timed_workload(source, 1, {.jobs = 1000, .load = 0.1});
  ASSERT_EQ(some.jobs.size(), 1000U);
  EXPECT_GT(some.jobs.back().arrival_s, 0.9 * source.jobs.back().arrival_s);
  EXPECT_LT(some.units, all.units);
  EXPECT_NE(some.jobs[500].arrival_s,
            timed_workload(source, 2, {.jobs = 1000, .load = 0.1}).jobs[500].arrival_s);
}

TEST(TracedJobs, PromisesAreDrawnFromWhatIsPredicted) {
  double sum = 0, squares = 0;
  const auto workload = timed_workload(source_of(3000), 1, {.jobs = 3000});
  uint32_t sensitive = 0;
  for (const auto& job : workload.jobs) {
    const double error = std::log(job.run_s / job.predicted.run_s);
    sum += error;
    squares += error * error;
    if (job.job_class == JobClass::kBestEffort) {
      EXPECT_EQ(job.promise_s, kNoPromise);
      continue;
    }
    ++sensitive;
    EXPECT_GE(job.promise_s, 1.2 * job.predicted.run_s);
    EXPECT_LE(job.promise_s, 3.0 * job.predicted.run_s);
  }
  EXPECT_NEAR(std::sqrt(squares / 3000), TimedSettings{}.run_error, 0.02);
  EXPECT_NEAR(sum / 3000, 0, 0.02);
  EXPECT_NEAR(sensitive / 3000.0, TimedSettings{}.sensitive_part, 0.03);
}

TEST(TracedJobs, ClassesThatTheTraceTellsAreKept) {
  auto source = source_of(50);
  for (size_t i = 0; i < 50; ++i)
    source.jobs[i].job_class = i % 2 == 0 ? JobClass::kBestEffort : JobClass::kLatencySensitive;
  const auto workload = timed_workload(source, 1, {});
  for (size_t i = 0; i < 50; ++i)
    EXPECT_EQ(workload.jobs[i].job_class, *source.jobs[i].job_class) << i;
}

TEST(TracedJobs, WhoeverAsksForAPartUsesLessOfIt) {
  for (const auto& job : timed_workload(source_of(200, 1, 500), 1, {}).jobs) {
    EXPECT_EQ(job.asked_milli, 500U);
    EXPECT_LE(job.need_milli, 500 / 1.2);
    EXPECT_GE(job.need_milli, 500 / 2.2 - 1);
  }
}

TEST(TracedJobs, OneSeedGivesTheSameJobsWhateverIsKnown) {
  TimedSettings settings{.jobs = 200};
  const auto source = generated(1, 20, 300);
  const auto unsure = timed_workload(source, 7, settings);
  settings.knows_all = true;
  const auto sure = timed_workload(source, 7, settings);
  ASSERT_EQ(unsure.jobs.size(), sure.jobs.size());
  for (size_t i = 0; i < sure.jobs.size(); ++i) {
    EXPECT_EQ(unsure.jobs[i].need_milli, sure.jobs[i].need_milli);
    EXPECT_EQ(unsure.jobs[i].arrival_s, sure.jobs[i].arrival_s);
    EXPECT_EQ(unsure.jobs[i].job_class, sure.jobs[i].job_class);
    EXPECT_EQ(sure.jobs[i].predicted.run_s, sure.jobs[i].run_s);
  }
  EXPECT_EQ(unsure.retained, sure.retained);
}

TEST(TracedJobs, WhoKnowsAllIsAskedByTheTruthOrAlike) {
  TimedSettings settings{.jobs = 200, .sensitive_part = 1};
  const auto source = generated(1, 20, 300);
  const auto unsure = timed_workload(source, 7, settings);
  settings.knows_all = true;
  const auto by_truth = timed_workload(source, 7, settings);
  settings.asked_alike = true;
  const auto alike = timed_workload(source, 7, settings);
  size_t asked = 0, others = 0;
  for (size_t i = 0; i < unsure.jobs.size(); ++i) {
    EXPECT_EQ(alike.jobs[i].predicted.run_s, alike.jobs[i].run_s);
    EXPECT_EQ(alike.jobs[i].promise_s, unsure.jobs[i].promise_s);
    EXPECT_GE(by_truth.jobs[i].promise_s, 1.2 * by_truth.jobs[i].run_s);
    asked += alike.jobs[i].promise_s < kNoPromise;
    others += by_truth.jobs[i].promise_s != alike.jobs[i].promise_s;
  }
  EXPECT_GT(asked, 50U);
  EXPECT_EQ(others, asked);
}

TEST(TracedJobs, SeveralUnitsAreWholeOnesOfOneJob) {
  const auto workload = timed_workload(source_of(10, 4), 1, {});
  ASSERT_EQ(workload.jobs.size(), 40U);
  for (size_t i = 0; i < 40; ++i) {
    const auto& part = workload.jobs[i];
    EXPECT_EQ(part.id, i + 1);
    EXPECT_EQ(part.whole_id(), i / 4 * 4 + 1);
    EXPECT_EQ(part.need_milli, kWholeUnit);
    EXPECT_EQ(part.predicted.milli, kWholeUnit);
  }
}

// Two of three units are of model 0; nobody may have model 2.
TEST(TracedJobs, UnitsKeepTheMixOfModelsAndWhoFindsNoneIsCounted) {
  auto source = source_of(60);
  source.models = {"T4", "A10", "V100"};
  source.units.assign(200, 0);
  source.units.insert(source.units.end(), 100, 1);
  for (size_t i = 0; i < 60; ++i) source.jobs[i].models = uint64_t{1} << i % 3;
  const TimedSettings settings{.load = 0.1};
  const auto workload = timed_workload(source, 1, settings);
  ASSERT_EQ(workload.type_of.size(), workload.units);
  const auto of_first = std::count(workload.type_of.begin(), workload.type_of.end(), 0);
  EXPECT_NEAR(static_cast<double>(of_first) / workload.units, 2.0 / 3, 1.0 / workload.units);
  EXPECT_EQ(workload.jobs.size(), 40U);
  EXPECT_EQ(left_out(source, settings, workload), 20U);
}

TEST(TracedJobs, ThereAreNoMoreUnitsThanTheNodesHave) {
  auto source = source_of(500);
  source.units.assign(2, 0);
  EXPECT_EQ(timed_workload(source, 1, {.load = 0.001}).units, 2U);
  EXPECT_EQ(timed_workload(source_of(500, 64), 1, {.load = 0.001}).units, kMostClusterUnits);
}

// What holds for openb's list, on generated ones with seeds of their own.
TEST(TracedJobs, SharesKeepMorePromisesThanWholeUnitsOnListsOfPods) {
  TimedSuite suite;
  suite.policies = {"whole", "share"};
  suite.seeds = 2;
  suite.first_seed = 2001;
  suite.sources = {generated(3, 40, 300)};
  suite.settings.jobs = 200;
  const auto value = run_timed_suite(suite);
  ASSERT_TRUE(value) << value.error().message;
  const auto& rows = (*value)["policies"];
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["policy"], "whole") << "the worst is first";
  EXPECT_EQ(rows[1]["jobs"], "generated");
  EXPECT_GT(rows[1]["promises_kept_of_made"].get<double>(), 0.95);
  EXPECT_LT(rows[1]["given_minus_used"].get<double>(), rows[0]["given_minus_used"].get<double>());
  const auto& told = (*value)["jobs"][0];
  EXPECT_EQ(told["simulated"], 200);
  EXPECT_GT(told["units"].get<double>(), 1);
  EXPECT_GT(told["skipped"]["it asks for no GPU"].get<int>(), 0);
}

TEST(TracedJobs, PublishedTracesAreRead) {
  const auto pods = kTraceDir / "openb_pod_list_default.csv";
  const auto philly = kTraceDir / "philly_until_2017-10-26.csv";
  for (const auto& path : {pods, philly})
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  const auto list = read_pods(pods, kTraceDir / "openb_node_list_gpu_node.csv");
  ASSERT_TRUE(list) << list.error().message;
  const auto openb = jobs_of_pods(*list, "pods");
  ASSERT_TRUE(openb) << openb.error().message;
  EXPECT_EQ(openb->jobs.size(), 6203U);
  EXPECT_EQ(openb->jobs.size() + openb->skipped.at("it asks for no GPU") +
                openb->skipped.at("it never ran"),
            8152U);
  const auto trace = read_timed_jobs(philly, "trace");
  ASSERT_TRUE(trace) << trace.error().message;
  EXPECT_EQ(trace->jobs.size(), 48'280U);
}

}  // namespace
}  // namespace tierpilot::sharing
