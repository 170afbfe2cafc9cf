#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/random.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/pairs/pair_data.h"
#include "tests/unit/sharing/drawn.h"
#include "tests/unit/sharing/error_of.h"
#include "tests/unit/sharing/traces.h"

namespace tierpilot::sharing {
namespace {

std::filesystem::path file(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / ("sharing-" + name);
  std::ofstream(path) << text;
  return path;
}

Drawn draw(double (*truth)(double, double)) {
  Drawn drawn;
  SeededRandom random(1);
  for (int i = 0; i < 500; ++i) {
    const double a = random.unit(), b = random.unit();
    drawn.rows.push_back({a, 7, b});  // one column says nothing
    drawn.targets.push_back(truth(a, b));
  }
  return drawn;
}

TEST(Regressors, RidgeFindsALine) {
  const auto drawn = draw([](double a, double b) { return 3 + 2 * a - 5 * b; });
  const auto ridge = make_ridge(0);
  ridge->fit(drawn.rows, drawn.targets);
  EXPECT_LT(root_mean_square(*ridge, drawn), 1e-4);
}

TEST(Regressors, TreesFindAStepAndNothingElseDoes) {
  const auto drawn = draw([](double a, double b) { return a > 0.5 && b > 0.5 ? 1.0 : 0.0; });
  const auto trees = make_boosted_trees({});
  const auto ridge = make_ridge(0);
  trees->fit(drawn.rows, drawn.targets);
  ridge->fit(drawn.rows, drawn.targets);
  EXPECT_LT(root_mean_square(*trees, drawn), 0.05);
  EXPECT_GT(root_mean_square(*ridge, drawn), 0.2);
}

TEST(Regressors, OneRowIsEnough) {
  for (const auto make : {+[] { return make_constant(); }, +[] { return make_median(); },
                          +[] { return make_ridge(1); }, +[] { return make_nearest(3); },
                          +[] { return make_boosted_trees({}); }}) {
    const auto regressor = make();
    regressor->fit({{1, 2}}, {5});
    EXPECT_NEAR(regressor->predict({3, 4}), 5, 1e-9);
  }
}

TEST(Studies, NoPairThatIsTestedHasACardOrModelOfTheTrainingPart) {
  PairData data;
  for (const char* card : {"x", "y"})
    for (const char* a : {"m", "n", "o", "p"})
      for (const char* b : {"m", "n", "o", "p"})
        data.samples.push_back({card, {a, 1, 1}, {b, 1, 1}, 0.5});
  const auto study = pair_studies(data).front();
  ASSERT_EQ(study.splits[0].name, "card and models");
  ASSERT_FALSE(study.splits[0].folds.empty());
  for (const auto& fold : study.splits[0].folds)
    for (const auto test : fold.test)
      for (const auto train : fold.train) {
        const auto &a = data.samples[test], &b = data.samples[train];
        EXPECT_NE(a.card, b.card);
        EXPECT_NE(a.victim.model, b.victim.model);
        EXPECT_NE(a.victim.model, b.neighbour.model);
        EXPECT_NE(a.neighbour.model, b.victim.model);
      }
}

TEST(Predictors, PairsOfOneCardAndOfAnotherFile) {
  const std::string header =
      "gpu,model_a,batch_a,model_b,batch_b,alone_a,alone_b,together_a,together_b\n";
  const auto one =
      file("one.csv", header + "x,m,1,n,,4,2,2,1\nx,m,1,m,1,4,4,0,0\nx,n,2,o,2,2,2,1,1\n");
  auto value = evaluate_predictors(one, {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["pairs_that_do_not_fit"], 1);
  value = evaluate_predictors(file("other.csv", header + "z,q,1,r,1,1,1,0.5,0.5\n"), one);
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_NEAR(error_of((*value)["studies"][0], "files", "default"), 0, 1e-6);
}

TEST(Predictors, ACardOfWhichNothingIsPublishedIsNamed) {
  const std::string header =
      "gpu,model_a,batch_a,model_b,batch_b,alone_a,alone_b,together_a,together_b\n";
  const auto value = evaluate_predictors(
      file("cards.csv", header + "Tesla V100,m,1,n,1,4,2,2,1\nmoon-9000,n,2,o,2,2,2,1,1\n"), {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["unknown_cards"], nlohmann::ordered_json::array({"moon-9000"}));
}

TEST(Predictors, WhereNothingCanBeLeftOutThereIsNoStudy) {
  const auto value = evaluate_predictors(
      file("single.csv",
           "gpu,model_a,batch_a,model_b,batch_b,alone_a,alone_b,together_a,together_b\n"
           "k80,m,1,m,1,4,4,2,2\n"),
      {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_TRUE((*value)["studies"].empty());
}

TEST(Predictors, HostileRowsAreSkippedAndFilesRefused) {
  const std::string header =
      "gpu,model_a,batch_a,model_b,batch_b,alone_a,alone_b,together_a,together_b\n";
  const auto value = evaluate_predictors(
      file("hostile.csv", header + "x,m,1,n,1,0,2,2,1\nx,m,1,n,1,nan,2,2,1\nx,m,1,n,1,1,1,-1,1\n"
                                   "x,m,1,n,1,1,1,99,1\nx\n\"\"\"x\",m,1e999,n,1,1,1,0.5,0.5\n"
                                   "y,m,1e999,n,-7,1,1,0.5,0.5\n"),
      {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_GE((*value)["skipped"], 5);
  EXPECT_FALSE(evaluate_predictors(file("empty.csv", header), {}));
  EXPECT_FALSE(evaluate_predictors(file("unknown.csv", "a,b\n1,2\n"), {}));
  EXPECT_FALSE(evaluate_predictors("does-not-exist.csv", {}));
}

TEST(Predictors, APairThatHardlyRanTogetherIsAMistakeOfMeasuring) {
  const std::string header =
      "gpu,model_a,batch_a,model_b,batch_b,alone_a,alone_b,together_a,together_b\n";
  const auto value = evaluate_predictors(
      file("hardly.csv", header + "x,m,1,n,,4,2,2,1\nx,m,1,n,1,1,1,1e-308,1\nx,n,2,o,2,2,2,1,1\n"),
      {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["skipped"], 1);
}

TEST(Predictors, PerceptronsWithStrangeShapes) {
  std::string text = "arch,activation,parameters,batch,widths,memory_mib,gpu_util\n";
  for (int i = 1; i < 60; ++i)
    text += fmt::format("{},A,{},{},{} 64,{},{}\n", i % 3, i * 6400, i, i * 100, 1000 + i, i);
  text += "0,A,1,1,,5,5\n0,A,1,0,3 4,5,5\n0,A,1,1,3 -4,5,5\n0,A,-1,1,1e9 1e9,,\n";
  const auto value = evaluate_predictors(file("shapes.csv", text), {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["skipped"], 3);
  for (const auto& study : (*value)["studies"])
    for (const auto& score : study["scores"]) EXPECT_TRUE(score["error"].is_number());
}

TEST(Predictors, WhatOfAMeasurementIsNoneIsCounted) {
  std::string text = "arch,activation,parameters,batch,widths,memory_mib,gpu_util\n";
  for (int i = 1; i < 40; ++i)
    text += fmt::format("{},A,{},{},{} 64,{},{}\n", i % 3, i * 6400, i, i * 100, 1000 + i, i);
  for (const char* wrong : {"5,500", "5,-5", "5,1e300", "5,abc", "nan,5", "-1,5", "inf,5"})
    text += std::string("0,A,1,1,3 4,") + wrong + "\n";
  text += "0,A,1,1,3 4,,5\n0,A,1,1,3 4,5,\n";  // one of the two was not measured
  const auto value = evaluate_predictors(file("wrong.csv", text), {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["skipped"], 7);
  EXPECT_NE((*value)["first_skipped"].get<std::string>().find("gpu_util"), std::string::npos);
}

TEST(Studies, ManyGroupsAreLeftOutAFewAtATime) {
  std::vector<std::string> groups;
  for (int i = 0; i < 500; ++i) groups.push_back("g" + std::to_string(i % 200));
  const auto split = leave_each_out("family", groups);
  EXPECT_LE(split.folds.size(), 40u);
  std::set<size_t> tested;
  for (const auto& fold : split.folds) {
    tested.insert(fold.test.begin(), fold.test.end());
    EXPECT_EQ(fold.train.size() + fold.test.size(), groups.size());
    std::set<std::string> held_out;
    for (const auto i : fold.test) held_out.insert(groups[i]);
    for (const auto i : fold.train) ASSERT_FALSE(held_out.contains(groups[i]));
  }
  EXPECT_EQ(tested.size(), groups.size());
}

// The goals that are reached on what was measured; docs/results/sharing.md has the rest.
TEST(Predictors, PairsOfCardsAndModelsNeverSeenAreBetterThanTheMedian) {
  const auto data = kTraces / "s3_gavel_pairs.csv";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not here";
  const auto value = evaluate_predictors(data, {});
  ASSERT_TRUE(value) << value.error().message;
  for (const char* split : {"card", "model", "card and models"})
    EXPECT_LT(error_of((*value)["studies"][0], split, "default"),
              0.85 * error_of((*value)["studies"][0], split, "median"))
        << split;
}

}  // namespace
}  // namespace tierpilot::sharing
