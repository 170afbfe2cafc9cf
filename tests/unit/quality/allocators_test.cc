#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "policies/quality/allocator.h"
#include "tests/unit/quality/halving.h"

namespace tierpilot::quality {
namespace {

JobState job(const Predictor& predictor, double iterations) {
  return {.max_cores = 8,
          .iterations = iterations,
          .one_core_s = 1,
          .largest_change = 1,
          .reports = 100,
          .predictor = &predictor};
}

std::vector<double> decide(std::string_view name, const std::vector<JobState>& jobs, double total) {
  return (*make_allocator(name))->allocate(jobs, {.total = total, .unit = 0.1, .period_s = 10});
}

TEST(Allocators, NeverGiveMoreThanThereIsNorThanAJobCanUse) {
  const Halving fast(5), slow(500);
  std::vector<JobState> jobs;
  for (int i = 0; i < 30; ++i) jobs.push_back(job(i % 2 ? fast : slow, i));
  jobs[3].predictor = nullptr;
  jobs[4].largest_change = 0;
  jobs[5].one_core_s = 0;
  for (const auto& name : allocators().names())
    for (const double total : {0.0, 1.0, 20.0, 1000.0}) {
      const auto given = decide(name, jobs, total);
      ASSERT_EQ(given.size(), jobs.size()) << name;
      EXPECT_LE(std::accumulate(given.begin(), given.end(), 0.0), total + 1e-6) << name;
      for (const double cores : given) {
        EXPECT_GE(cores, 0) << name;
        EXPECT_LE(cores, 8 + 1e-9) << name;
      }
    }
}

TEST(Allocators, WholeUnitsAreNotMoreThanAJobCanUse) {
  const Halving fast(5);
  auto narrow = job(fast, 1), wide = job(fast, 1);
  narrow.max_cores = 1.03;
  for (const auto& name : allocators().names())
    for (const double unit : {0.1, 1.0}) {
      const auto given =
          (*make_allocator(name))
              ->allocate(std::vector{narrow, wide}, {.total = 8, .unit = unit, .period_s = 10});
      EXPECT_LE(given[0], 1.03 + 1e-9) << name;
    }
}

TEST(Allocators, NoJobsIsNoTrouble) {
  for (const auto& name : allocators().names()) EXPECT_TRUE(decide(name, {}, 10).empty()) << name;
}

TEST(Fair, IsEqualAndWorkConserving) {
  const Halving curve(5);
  std::vector<JobState> jobs(3, job(curve, 0));
  jobs[0].max_cores = 1;
  const auto given = decide("fair", jobs, 9);
  EXPECT_DOUBLE_EQ(given[0], 1);
  EXPECT_DOUBLE_EQ(given[1], 4);
  EXPECT_DOUBLE_EQ(given[2], 4);
}

TEST(FairWeighted, SharesByWeight) {
  const Halving curve(5);
  std::vector<JobState> jobs(2, job(curve, 0));
  jobs[1].weight = 3;
  const auto given = decide("fair-weighted", jobs, 4);
  EXPECT_DOUBLE_EQ(given[0], 1);
  EXPECT_DOUBLE_EQ(given[1], 3);
}

TEST(Quality, CoresGoWhereTheLossFallsMost) {
  const Halving curve(20);
  const std::vector<JobState> jobs{job(curve, 0), job(curve, 200)};
  for (const char* name : {"quality", "quality-published"}) {
    const auto given = decide(name, jobs, 4);
    EXPECT_GT(given[0], given[1]) << name;
    EXPECT_GT(given[1], 0) << name;
  }
}

TEST(Quality, NobodyIsBelowAQuarterOfTheFairShare) {
  const Halving curve(20);
  std::vector<JobState> jobs(10, job(curve, 1000));
  jobs[0] = job(curve, 0);
  for (const double cores : decide("quality", jobs, 10)) EXPECT_GE(cores, 0.25 - 1e-9);
}

TEST(Quality, AJobThatNeverReportsGetsItsFairShare) {
  const Halving curve(20);
  std::vector<JobState> jobs(4, job(curve, 0));
  jobs[2].predictor = nullptr;
  EXPECT_GE(decide("quality", jobs, 8)[2], 2 - 1e-9);
}

TEST(Quality, ANewcomerComesFirstAndNotForEver) {
  const Halving curve(5);
  std::vector<JobState> jobs(8, job(curve, 20));
  jobs[7].reports = 0;
  jobs[7].predictor = nullptr;
  jobs[7].arrival_s = 100;
  const auto at = [&](double now_s) {
    return (*make_allocator("quality"))
        ->allocate(jobs, {.total = 2, .unit = 0.1, .period_s = 10, .now_s = now_s});
  };
  EXPECT_NEAR(at(105)[7], 1, 1e-9);
  EXPECT_NEAR(at(500)[7], 0.25, 1e-9) << "its fair share";
}

TEST(Quality, ANewcomerHasACoreWhileItLoadsAndItsMostWhenItTrains) {
  const Halving curve(5);
  std::vector<JobState> jobs(8, job(curve, 20));
  for (auto& each : jobs) each.max_cores = 6;
  jobs[7].reports = 0;
  jobs[7].arrival_s = 100;
  const auto newcomers = [&] {
    return (*make_allocator("quality"))
        ->allocate(jobs, {.total = 16, .unit = 0.1, .period_s = 10, .now_s = 105})[7];
  };
  EXPECT_NEAR(newcomers(), 2, 1e-9) << "its fair share is more than a core";
  jobs[7].reports = 1;
  EXPECT_NEAR(newcomers(), 6, 1e-9);
}

TEST(QualityPublished, QueuesByArrivalWhereUnitsDoNotSuffice) {
  const Halving curve(20);
  std::vector<JobState> jobs(3, job(curve, 0));
  jobs[0].arrival_s = 9;
  EXPECT_EQ(decide("quality-published", jobs, 2), (std::vector<double>{0, 1, 1}));
}

TEST(Srtf, ServesTheShortestRemainingTimeFirst) {
  const Halving fast(5), slow(500);
  const auto given = decide("srtf", {job(slow, 100), job(fast, 100)}, 8);
  EXPECT_DOUBLE_EQ(given[1], 8);
}

}  // namespace
}  // namespace tierpilot::quality
