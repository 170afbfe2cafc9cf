// What was measured badly does not teach, and upper figures hold for groups that were never seen.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/group_margin.h"
#include "policies/sharing/predict/perceptron_data.h"
#include "policies/sharing/predict/trimmed.h"
#include "tests/unit/sharing/error_of.h"
#include "tests/unit/sharing/traces.h"

namespace tierpilot::sharing {
namespace {

TEST(Trimmed, RunsThatWentWrongDoNotTeach) {
  std::vector<Row> rows;
  std::vector<double> targets;
  for (int i = 0; i < 200; ++i) {
    rows.push_back({static_cast<double>(i)});
    targets.push_back(i % 20 == 19 ? -1000.0 : 3 + 2.0 * i + 0.01 * (i % 3));
  }
  const auto plain = make_ridge(0), trimmed = make_trimmed(make_ridge(0));
  plain->fit(rows, targets);
  trimmed->fit(rows, targets);
  EXPECT_GT(std::abs(plain->predict({100}) - 203), 10);
  EXPECT_NEAR(trimmed->predict({100}), 203, 0.1);
}

TEST(Trimmed, WhatIsExactStaysWhole) {
  const auto trimmed = make_trimmed(make_constant());
  trimmed->fit({{1}, {2}, {3}}, {5, 5, 5});
  EXPECT_EQ(trimmed->predict({9}), 5);
  trimmed->fit({{1}}, {7});
  EXPECT_EQ(trimmed->predict({9}), 7);
}

// Groups are drawn, their spread is not known to the bound.
double missed(size_t groups, double mean) {
  std::mt19937 random(1);
  std::normal_distribution<double> drawn(mean, 0.3);
  int missed = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<std::vector<double>> exceeds;
    for (size_t i = 0; i < groups; ++i) exceeds.push_back({drawn(random)});
    missed += drawn(random) > group_margin(exceeds);
  }
  return static_cast<double>(missed) / kTrials;
}

TEST(GroupMargin, HoldsForNinetyNineOfAHundredUnseenGroupsHoweverFewWereSeen) {
  for (const double mean : {0.0, 0.1, 0.3})
    for (const size_t groups : {2U, 3U, 5U, 20U})
      EXPECT_LT(missed(groups, mean), 0.017) << groups << " around " << mean;  // three deviations
}

TEST(GroupMargin, FewerGroupsThatDifferAsMuchAreTrustedLess) {
  EXPECT_GT(group_margin({{0.1}, {0.3}}), 2 * group_margin({{0.1}, {0.3}, {0.1}, {0.3}}));
}

TEST(GroupMargin, IsNeverBelowWhatAGroupNeededNorBelowNothing) {
  EXPECT_EQ(group_margin({{-0.5, -0.2}}), 0);
  EXPECT_EQ(group_margin({{-0.5, 0}, {0}}), 0);
  EXPECT_GE(group_margin({{-0.5, -0.2}, {-0.2}}), 0);
  EXPECT_EQ(group_margin({{0.1, 0.7}}), 0.7);
  EXPECT_EQ(group_margin({{}}), 0);
  EXPECT_GE(group_margin({{0, 0.4}, {0.4}, {0.4}}), 0.4);
}

nlohmann::ordered_json study_of(const std::filesystem::path& data, const std::string& target) {
  static std::map<std::filesystem::path, decltype(evaluate_predictors(data, {}))> evaluated;
  if (!evaluated.contains(data)) evaluated.emplace(data, evaluate_predictors(data, {}));
  const auto& value = evaluated.at(data);
  if (!value) return nullptr;
  for (const auto& study : (*value)["studies"])
    if (study["target"] == target) return study;
  return nullptr;
}

TEST(UnseenGroups, UseOfPerceptronsIsWithinTheGoal) {
  const auto data = kTraces / "s3_mlp_memory_utilisation.csv";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not here";
  const auto study = study_of(data, "utilisation");
  ASSERT_FALSE(study.is_null());
  for (const auto& score : study["scores"])
    if (score["predictor"] == "default") {
      EXPECT_LT(score["error"], study["goal"]) << score["split"];
    }
}

TEST(UnseenGroups, OfPerceptronsAreForetoldBetterThanByTheMeanByHalf) {
  const auto data = kTraces / "s3_mlp_memory_utilisation.csv";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not here";
  for (const char* target : {"utilisation", "memory"})
    for (const char* split : {"family", "activation"}) {
      const auto study = study_of(data, target);
      EXPECT_LT(error_of(study, split, "default"), error_of(study, split, "constant") / 2)
          << target << split;
    }
}

TEST(UnseenGroups, MemoryOfPerceptronsIsRarelyTooLowAndNotByInflation) {
  const auto data = kTraces / "s3_mlp_memory_utilisation.csv";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not here";
  const auto study = study_of(data, "memory");
  ASSERT_FALSE(study.is_null());
  for (const auto& placed : study["placed"]) {
    EXPECT_LE(placed["under_predicted"], 0.01) << placed["split"];
    EXPECT_LT(placed["mean_log_excess"], std::log(1.35)) << placed["split"];
  }
}

Study default_only(Study study) {
  study.contenders = {{"default", [] { return make_constant(); }}};
  return study;
}

TEST(UnseenGroups, AreCalibratedByThoseOfTheSplitWhereAnotherGroupingHasOneGroup) {
  Study study{.calibration = {{"family", {}}, {"activation", {}}}};
  for (int group = 0; group <= 10; ++group)
    for (int row = 0; row < 4; ++row) {
      study.rows.push_back({1});
      study.targets.push_back(0.1 * group);
      study.calibration[0].groups.emplace_back("pyramid");
      study.calibration[1].groups.push_back(std::to_string(group));
    }
  study.splits = {leave_each_out("activation", study.calibration[1].groups)};
  const auto result = run_study(default_only(std::move(study)));
  ASSERT_EQ(result.placed.size(), 1u);
  EXPECT_EQ(result.placed[0].under_predicted, 0);
}

// The most of twenty is exceeded by one in 21.
TEST(UnseenGroups, OfAFewRowsOfOneGroupMoreIsPlacedThanTheyNeeded) {
  constexpr size_t kTrain = 20, kTest = 500;
  std::mt19937 random(3);
  std::uniform_real_distribution<double> drawn(0, 1);
  Study study{.calibration = {{"family", std::vector<std::string>(kTrain + kTest, "pyramid")}}};
  Fold fold{"all", {}, {}};
  for (size_t i = 0; i < kTrain + kTest; ++i) {
    study.rows.push_back({1});
    study.targets.push_back(drawn(random));
    (i < kTrain ? fold.train : fold.test).push_back(i);
  }
  study.splits = {{"files", {fold}}};
  EXPECT_LE(run_study(default_only(std::move(study))).placed[0].under_predicted, 0.01);
}

// Of the rows of one family, of so many at most.
PerceptronData family_of(const PerceptronData& data, const std::string& family, size_t most) {
  PerceptronData own;
  for (size_t i = 0; i < data.rows.size() && own.rows.size() < most; ++i) {
    if (data.families[i] != family) continue;
    own.rows.push_back(data.rows[i]);
    own.memory_mib.push_back(data.memory_mib[i]);
    own.utilisation_percent.push_back(NAN);
    own.families.push_back(family);
    own.activations.push_back(data.activations[i]);
  }
  return own;
}

TEST(UnseenGroups, MemoryOfEachFamilyAloneIsRarelyTooLow) {
  const auto path = kTraces / "s3_mlp_memory_utilisation.csv";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
  auto table = CsvTable::open(path).value();
  const auto data = read_perceptrons(table).value();
  for (const char* family : {"gradual", "pyramid", "uniform"})
    for (const size_t most : {100U, 10'000U}) {
      auto study = perceptron_studies(family_of(data, family, most), nullptr).front();
      ASSERT_EQ(study.target, "memory");
      study.contenders.resize(1);
      const auto result = run_study(study);
      ASSERT_EQ(result.placed.size(), 1u);
      EXPECT_LE(result.placed[0].under_predicted, 0.01) << family << most;
      EXPECT_LT(result.placed[0].mean_excess, std::log(1.35)) << family << most;
    }
}

TEST(UnseenGroups, MemoryBesideEstimatorsIsNotTooLow) {
  const auto data = kTraces / "s3_memory_estimators.csv";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not here";
  const auto study = study_of(data, "memory of networks");
  ASSERT_FALSE(study.is_null());
  EXPECT_LE(study["placed"][0]["under_predicted"], 0.01);
}

}  // namespace
}  // namespace tierpilot::sharing
