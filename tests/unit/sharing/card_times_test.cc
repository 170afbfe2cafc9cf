// Times of jobs on cards: what is published of a card tells how it compares with others.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/card_times.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/gpu_kinds.h"
#include "tests/unit/sharing/traces.h"

namespace tierpilot::sharing {
namespace {

std::filesystem::path table_of(const std::string& text) {
  const auto path = std::filesystem::path(testing::TempDir()) / "sharing-card-times.csv";
  std::ofstream(path) << text;
  return path;
}

double error_on_cards(const nlohmann::ordered_json& value, const std::string& predictor) {
  for (const auto& score : value["studies"][0]["scores"])
    if (score["predictor"] == predictor) return score["error"].get<double>();
  ADD_FAILURE() << predictor;
  return NAN;
}

TEST(CardTimes, OneGpuAloneCountsAndTheMostPowerDoes) {
  const auto alone = table_of(
      "gpu,model,batch,gpus,steps_s,steps_s_unconsolidated\n"
      "k80,LM,5,1,2,2\nk80,LM,5,2,3,3\np100,LM,5,1,8,8\np100,A3C,4,1,0,0\nabacus,LM,5,1,2,2\n");
  auto table = CsvTable::open(alone);
  ASSERT_TRUE(table);
  ASSERT_TRUE(is_card_times(*table));
  const auto times = read_card_times(*table);
  ASSERT_TRUE(times);
  EXPECT_EQ(times->skipped, 2u);
  ASSERT_EQ(times->by_job.size(), 1u);
  EXPECT_EQ(times->by_job.begin()->second,
            (std::map<std::string, double>{{"k80", 0.5}, {"p100", 0.125}}));
  const auto epochs = table_of(
      "gpu,dataset,network,batch_size,optimizer,power_limit_w,epoch_s,average_w\n"
      "v100,squad,bert,8,adam,100,50,90\nv100,squad,bert,8,adam,250,20,200\n"
      "v100,squad,bert,8,adam,200,30,190\n");
  auto other = CsvTable::open(epochs);
  ASSERT_TRUE(other);
  ASSERT_TRUE(is_card_times(*other));
  EXPECT_EQ(read_card_times(*other)->by_job.begin()->second.at("v100"), 20);
}

TEST(CardTimes, TimesThatCannotBeAreLeftOutWithTheCause) {
  const std::pair<const char*, const char*> wrong[]{
      {"p100,LM,5,1,-8", "steps_s is '-8'"},  {"p100,LM,5,1,1e-300", "steps_s is '1e-300'"},
      {"p100,LM,5,1,1e300", "from 1e-08 to"}, {"p100,LM,5,1,nan", "steps_s is 'nan'"},
      {"p100,LM,5,1,", "steps_s is ''"},      {"p100,LM,5,-1,8", "gpus is '-1'"},
      {"p100,LM,5,many,8", "gpus is 'many'"}, {"abacus,LM,5,1,8", "the card 'abacus'"}};
  for (const auto& [row, cause] : wrong) {
    const auto path =
        table_of(std::string("gpu,model,batch,gpus,steps_s\nk80,LM,5,1,2\n") + row + "\n");
    auto table = CsvTable::open(path);
    ASSERT_TRUE(table);
    const auto times = read_card_times(*table);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_EQ(times->skipped, 1U) << row;
    EXPECT_NE(times->first_skipped.find(cause), std::string::npos) << times->first_skipped;
    EXPECT_EQ(times->by_job.begin()->second.size(), 1U) << row;
  }
  for (const char* row : {"100,-50", "100,1e300", "-1,50", "1e300,50", "much,50"}) {
    auto table = CsvTable::open(
        table_of(std::string("gpu,dataset,network,batch_size,optimizer,power_limit_w,epoch_s\n"
                             "v100,squad,bert,8,adam,100,40\nv100,squad,bert,8,adam,") +
                 row + "\n"));
    ASSERT_TRUE(table);
    const auto times = read_card_times(*table);
    ASSERT_TRUE(times) << times.error().message;
    EXPECT_EQ(times->skipped, 1U) << row;
    EXPECT_EQ(times->by_job.begin()->second.at("v100"), 40) << row;
  }
}

TEST(CardTimes, ACardIsKnownByTheNamesOfPeopleAndDrivers) {
  for (const auto* const name : {"v100", "V100", "Tesla V100-SXM2-16GB", "NVIDIA V100"})
    EXPECT_EQ(published_gpu(name), published_gpu("v100")) << name;
  EXPECT_EQ(published_gpu("Quadro RTX 6000"), published_gpu("rtx6000"));
  EXPECT_EQ(published_gpu("NVIDIA RTX 6000 Ada Generation"), published_gpu("rtx6000ada"));
  EXPECT_EQ(published_gpu("NVIDIA GeForce RTX 2080 Ti"), published_gpu("rtx2080ti"));
  EXPECT_NE(published_gpu("a40"), published_gpu("a4000"));
  EXPECT_NEAR(published_gpu("NVIDIA A100-SXM4-40GB")->memory_bytes_per_s(), 1555e9, 1e9);
  for (const auto* const name : {"", "moon-9000", "GTX", "a400", "100", "tesla"})
    EXPECT_EQ(published_gpu(name), nullptr) << name;
}

// A job that only computes: its times are as the cards' operations per second.
TEST(CardTimes, EachRuleIsExactWhereItHolds) {
  const double slow = 1 / published_gpu("k80")->float32_ops_per_s();
  const double fast = 1 / published_gpu("p100")->float32_ops_per_s();
  const auto value = evaluate_predictors(
      table_of("gpu,model,batch,gpus,steps_s\nk80,a,1,1," + std::to_string(1e-9 / slow) +
               "\np100,a,1,1," + std::to_string(1e-9 / fast) + "\n"),
      {});
  ASSERT_TRUE(value) << value.error().message;
  EXPECT_EQ((*value)["studies"][0]["measure"], "root mean square of ln");
  EXPECT_NEAR(error_on_cards(*value, "operations"), 0, 1e-6);
  EXPECT_NEAR(error_on_cards(*value, "as on others"), std::log(slow / fast), 1e-6);
  EXPECT_GT(error_on_cards(*value, "default"), 0.05);
}

TEST(CardTimes, WhatRanOnOneCardTellsNothing) {
  const auto value =
      evaluate_predictors(table_of("gpu,model,batch,gpus,steps_s\nk80,a,1,1,2\n"), {});
  ASSERT_TRUE(value);
  EXPECT_TRUE((*value)["studies"].empty());
  const auto path = table_of("gpu,model,batch,gpus,steps_s\nk80,a,1,1,2\n");
  EXPECT_FALSE(evaluate_predictors(path, path));
}

TEST(CardTimes, FeaturesTellMoreThanOtherCardsAlone) {
  for (const char* name : {"s3_gavel_alone.csv", "s3_zeus_power.csv"}) {
    const auto data = kTraces / name;
    if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not here";
    const auto value = evaluate_predictors(data, {});
    ASSERT_TRUE(value) << value.error().message;
    EXPECT_LT(error_on_cards(*value, "default"), 0.7 * error_on_cards(*value, "as on others"))
        << name;
  }
}

}  // namespace
}  // namespace tierpilot::sharing
