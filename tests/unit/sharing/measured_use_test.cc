// The law of pairs, held against tables of pairs on a GPU that tell what each job uses alone.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "policies/sharing/interference/pair_prior.h"
#include "policies/sharing/predict/evaluate.h"
#include "tests/unit/sharing/error_of.h"

namespace tierpilot::sharing {
namespace {

using nlohmann::ordered_json;

struct Job {
  std::string model;
  double milli = 0, alone = 0;
  double traced_milli = 0;  // 0: not told
};
using KeptBeside = std::function<double(const Job& victim, const Job& neighbour)>;

// Of use and speed that say nothing of each other.
const std::vector<Job> kJobs{{"busy", 950, 9},    {"long", 800, 1.5},   {"half", 500, 20},
                             {"quick", 700, 130}, {"waiting", 120, 11}, {"idle", 60, 75}};

// Both as docs/gpu-pairs.md has them.
double use_by_law(const Job& a, const Job& b) {
  return 1 / (1 + std::pow(a.milli / 1000 * b.milli / 1000, 0.75));
}

double on_shared_host(const Job& a, const Job& b) {
  const double u_a = a.milli / 1000, u_b = b.milli / 1000;
  const double g_a = u_a / a.alone, g_b = u_b / b.alone;
  return 1 / (1 + (u_a * u_b + (1 - u_a) * (1 - u_b)) * std::pow(g_b / g_a, 0.25));
}

double nine_tenths(const Job&, const Job&) {
  return 0.9;
}

std::string row(const std::string& card, const Job& a, const Job& b, const KeptBeside& kept) {
  const auto job = [&](const Job& one, const Job& other) {
    return fmt::format(",{},32,{},0,1e9,{},{},0.01,{}", one.model, one.milli, one.alone,
                       one.alone * kept(one, other),
                       one.traced_milli > 0 ? fmt::format("{}", one.traced_milli) : "");
  };
  return card + ",1" + job(a, b) + job(b, a) + "\n";
}

std::string use_rows(const std::string& card, const KeptBeside& kept,
                     const std::vector<Job>& jobs = kJobs) {
  std::string text;
  for (size_t i = 0; i < jobs.size(); ++i)
    for (size_t j = 0; j <= i; ++j) text += row(card, jobs[i], jobs[j], kept);
  return text;
}

std::vector<ordered_json> studies_of(const std::string& rows) {
  const auto path = std::filesystem::path(testing::TempDir()) / "measured-use.csv";
  std::string header = "card,seed";
  for (const char* job : {"a", "b"})
    for (const char* name : {"model", "batch", "milli", "memory_bytes", "traffic_bytes_s", "alone",
                             "together", "spread", "traced_milli"})
      header += fmt::format(",{}_{}", name, job);
  std::ofstream(path) << header << "\n" << rows;
  const auto value = evaluate_predictors(path, {});
  EXPECT_TRUE(value) << value.error().message;
  return value ? (*value)["studies"].get<std::vector<ordered_json>>() : std::vector<ordered_json>{};
}

std::vector<std::string> targets_of(const std::vector<ordered_json>& studies) {
  std::vector<std::string> targets;
  for (const auto& study : studies) targets.push_back(study["target"]);
  return targets;
}

const std::vector<std::string> kTargets{"retained, law of measured use", "kept beyond half",
                                        "ln of kept beyond half"};
constexpr const char* kSplits[]{"all rows", "model"};

// The law is not trained: what another file tells changes nothing.
TEST(MeasuredUse, ByAnotherFileItIsTheSameLaw) {
  const auto alone = studies_of(use_rows("NVIDIA H200", use_by_law));
  const auto path = std::filesystem::path(testing::TempDir()) / "measured-use.csv";
  const auto value = evaluate_predictors(path, path);
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["studies"].get<std::vector<ordered_json>>(), alone);
}

TEST(MeasuredUse, WhereTheLawHoldsItIsExact) {
  const auto studies = studies_of(use_rows("NVIDIA H200", use_by_law));
  ASSERT_EQ(targets_of(studies), kTargets);
  EXPECT_EQ(studies[1]["measure"], "mean absolute error");
  EXPECT_EQ(studies[2]["measure"], "root mean square of ln");
  for (const char* split : kSplits) {
    EXPECT_LT(error_of(studies[0], split, "default"), 1e-4) << split;
    for (const char* other : {"shared host", "mean", "median"})
      EXPECT_GT(error_of(studies[0], split, other), 0.05) << split << ", " << other;
  }
}

TEST(MeasuredUse, TheLawOfASharedHostIsTriedBeside) {
  const auto study = studies_of(use_rows("NVIDIA H200", on_shared_host)).at(0);
  for (const char* split : kSplits) {
    EXPECT_LT(error_of(study, split, "shared host"), 1e-4) << split;
    EXPECT_GT(error_of(study, split, "default"), 0.05) << split;
  }
}

TEST(MeasuredUse, ModelsAreTestedWithTheirPairs) {
  const auto study = studies_of(use_rows("NVIDIA H200", use_by_law)).at(0);
  const auto pairs = kJobs.size() * (kJobs.size() + 1) / 2;
  for (const auto& score : study["scores"]) {
    // Of each model the pairs that it is in, in both directions.
    const auto tested = score["split"] == "model" ? kJobs.size() * kJobs.size() * 2 : 2 * pairs;
    EXPECT_EQ(score["tested"], tested) << score;
  }
}

// Where it does not hold it is not fitted until it does.
TEST(MeasuredUse, WhereTheLawDoesNotHoldThatIsTold) {
  double off = 0;
  for (const auto& a : kJobs)
    for (const auto& b : kJobs)
      off += std::abs(use_by_law(a, b) - 0.9) * (a.model == b.model ? 2 : 1);
  off /= static_cast<double>(kJobs.size() * (kJobs.size() + 1));
  ASSERT_GT(off, 0.1);
  const auto studies = studies_of(use_rows("NVIDIA H200", nine_tenths));
  ASSERT_EQ(targets_of(studies), kTargets);
  EXPECT_NEAR(error_of(studies[0], "all rows", "default"), off, 1e-4);
  EXPECT_GT(error_of(studies[0], "model", "default"), 0.1);
  for (const char* split : kSplits)
    for (const char* baseline : {"mean", "median"})
      EXPECT_LT(error_of(studies[0], split, baseline), 1e-6) << split << ", " << baseline;
}

// Where busy ones keep less than half.
TEST(MeasuredUse, BeyondHalfIsWhatLiveJobsBeginWith) {
  const auto four_fifths = [](const Job& a, const Job& b) { return 0.8 * use_by_law(a, b); };
  const auto studies = studies_of(use_rows("NVIDIA H200", four_fifths));
  ASSERT_EQ(targets_of(studies), kTargets);
  const auto live = [](const Job& job) { return Sharer{.on = UnitKind::kGpu, .milli = job.milli}; };
  double off = 0, squares = 0, count = 0;
  for (const auto& a : kJobs)
    for (const auto& b : kJobs) {
      const double kept = std::min(1.0, 2 * four_fifths(a, b));
      const double ln = measured_gpu_prior().ln_kept(live(a), live(b));
      const double times = a.model == b.model ? 2 : 1;
      off += times * std::abs(std::exp(ln) - kept);
      squares += times * std::pow(ln - std::log(kept), 2);
      count += times;
    }
  ASSERT_GT(off / count, 0.01);
  EXPECT_NEAR(error_of(studies[1], "all rows", "default"), off / count, 1e-4);
  EXPECT_NEAR(error_of(studies[2], "all rows", "default"), std::sqrt(squares / count), 1e-4);
}

// The law is of the use that kernels tell, and the driver tells of none.
TEST(MeasuredUse, TheUseThatKernelsTellIsTriedBeside) {
  auto jobs = kJobs;
  for (auto& job : jobs) {
    job.traced_milli = job.milli;
    job.milli = 1000;
  }
  const auto by_kernels = [](Job a, Job b) {
    a.milli = a.traced_milli;
    b.milli = b.traced_milli;
    return use_by_law(a, b);
  };
  const auto study = studies_of(use_rows("NVIDIA H200", by_kernels, jobs)).at(0);
  for (const char* split : kSplits) {
    EXPECT_LT(error_of(study, split, "use told by kernels"), 1e-4) << split;
    EXPECT_GT(error_of(study, split, "default"), 0.05) << split;
  }
  // Where one does not tell it, it is not tried.
  jobs[0].traced_milli = 0;
  const auto untold = studies_of(use_rows("NVIDIA H200", nine_tenths, jobs)).at(0);
  EXPECT_TRUE(std::isnan(error_of(untold, "all rows", "use told by kernels")));
  EXPECT_FALSE(std::isnan(error_of(untold, "all rows", "default")));
}

TEST(MeasuredUse, WithoutTheUseOfOneJobSpeedsTellIt) {
  auto untold = kJobs[0];
  untold.milli = 0;
  const auto studies = studies_of(use_rows("NVIDIA H200", use_by_law) +
                                  row("NVIDIA H200", untold, kJobs[1], nine_tenths));
  const std::vector<std::string> targets{"retained speed", kTargets[1], kTargets[2]};
  EXPECT_EQ(targets_of(studies), targets);
}

TEST(MeasuredUse, PairsOnCoresAreNoneOfThese) {
  std::string cores;
  for (const auto& [card, memory] : {std::pair{"one core", "1e6"}, {"two cores", "2e6"}})
    for (int i = 0; i < 4; ++i)
      cores += fmt::format("{0},1,m{2},8,900,{1},1e9,100,90,0.01,,n{2},8,100,{1},1e8,50,50,0.01,\n",
                           card, memory, i);
  const std::vector<std::string> of_cores{"kept on one core", "kept on two cores"};
  EXPECT_EQ(targets_of(studies_of(cores)), of_cores);
  auto both = of_cores;
  both.insert(both.end(), kTargets.begin(), kTargets.end());
  const auto studies = studies_of(cores + use_rows("NVIDIA H200", use_by_law));
  ASSERT_EQ(targets_of(studies), both);
  EXPECT_LT(error_of(studies[2], "all rows", "default"), 1e-4);
}

}  // namespace
}  // namespace tierpilot::sharing
