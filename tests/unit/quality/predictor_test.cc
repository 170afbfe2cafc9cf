#include "policies/quality/predictor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"
#include "policies/quality/iteration_cost.h"
#include "policies/quality/loss_history.h"
#include "policies/quality/throughput.h"

namespace tierpilot::quality {
namespace {

std::unique_ptr<Predictor> made(std::string_view name) {
  return std::move(*make_predictor(name));
}

double exponential(double k) {
  return 2 + 5 * std::exp(-k / 80);
}

TEST(Predictors, AnUnknownNameIsAnErrorThatNamesThoseThatThereAre) {
  const auto none = make_predictor("oracle");
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("exponential-mean"), std::string::npos);
}

TEST(Predictors, NothingIsForetoldBeforeTheFirstUsableReport) {
  for (const auto name : predictor_names()) {
    const auto predictor = made(name);
    EXPECT_FALSE(predictor->at(10)) << name;
    predictor->observe({1, std::numeric_limits<double>::quiet_NaN()});
    predictor->observe({2, std::numeric_limits<double>::infinity()});
    for (int i = 3; i < 30; ++i) predictor->observe({double(i), 1e200});
    EXPECT_FALSE(predictor->at(40)) << name;
    predictor->observe({30, 7});
    ASSERT_TRUE(predictor->at(40)) << name;
    EXPECT_DOUBLE_EQ(predictor->at(40)->loss, 7) << name;
  }
}

TEST(Quality, AnExponentialCurveIsForetoldToItsEnd) {
  const auto predictor = made("quality");
  for (int k = 1; k <= 150; ++k) predictor->observe({double(k), exponential(k)});
  EXPECT_NEAR(predictor->at(160)->loss, exponential(160), 0.01 * exponential(160));
  EXPECT_NEAR(predictor->at(400)->loss, exponential(400), 0.05 * exponential(400));
}

TEST(Quality, ASublinearCurveIsForetoldToItsEnd) {
  const auto loss = [](double k) { return 1 + 20 / (k + 4); };
  const auto predictor = made("quality");
  for (int k = 1; k <= 200; ++k) predictor->observe({double(k), loss(k)});
  EXPECT_NEAR(predictor->at(210)->loss, loss(210), 0.01 * loss(210));
  EXPECT_NEAR(predictor->at(400)->loss, loss(400), 0.03 * loss(400));
}

TEST(Quality, NoiseDoesNotCarryItAway) {
  SeededRandom random(4);
  const auto predictor = made("quality");
  for (int k = 1; k <= 400; ++k)
    predictor->observe({double(k), exponential(k) + 0.1 * (random.unit() - 0.5)});
  EXPECT_NEAR(predictor->at(410)->loss, 2, 0.1);
  EXPECT_NEAR(predictor->at(800)->loss, 2, 0.2);
}

TEST(Quality, AnOutlierAmongTheNewestReportsHardlyMovesAForecast) {
  constexpr double kNoise = 0.01;
  for (const int outlier : {400, 399, 398, 396, 390})
    for (const double height : {40.0, -40.0, 400.0}) {
      SeededRandom random(7);
      const auto with = made("quality"), without = made("quality");
      for (int k = 1; k <= 400; ++k) {
        const double loss = exponential(k) + kNoise * (random.unit() - 0.5);
        without->observe({double(k), loss});
        with->observe({double(k), loss + (k == outlier ? height * kNoise : 0)});
      }
      EXPECT_NEAR(with->at(410)->loss, without->at(410)->loss, kNoise) << outlier << " " << height;
      EXPECT_NEAR(with->at(600)->loss, without->at(600)->loss, 2 * kNoise)
          << outlier << " " << height;
    }
}

TEST(Quality, AfterARestartItForgetsWhatCameAfterThatPoint) {
  const auto predictor = made("quality");
  for (int k = 1; k <= 100; ++k) predictor->observe({double(k), exponential(k)});
  for (int k = 20; k <= 60; ++k) predictor->observe({double(k), exponential(k)});
  EXPECT_NEAR(predictor->at(70)->loss, exponential(70), 0.02 * exponential(70));
}

TEST(Quality, AfterAJumpOfTheLossItGoesByWhatCameSince) {
  const auto predictor = made("quality");
  const auto stepped = [](int k) { return exponential(k) - (k > 200 ? 0.8 : 0); };
  for (int k = 1; k <= 260; ++k) predictor->observe({double(k), stepped(k)});
  EXPECT_NEAR(predictor->at(270)->loss, stepped(270), 0.01);
  EXPECT_NEAR(predictor->at(400)->loss, stepped(400), 0.1);
}

TEST(Quality, IntervalsHoldTheForecastAndAreFinite) {
  SeededRandom random(1);
  for (int length : {1, 2, 3, 4, 5, 8, 30}) {
    const auto predictor = made("quality");
    for (int k = 1; k <= length; ++k) predictor->observe({double(k), random.unit() - 0.5});
    for (const double ahead : {1.0, 100.0, 1e6}) {
      const auto forecast = predictor->at(length + ahead);
      ASSERT_TRUE(forecast);
      EXPECT_TRUE(std::isfinite(forecast->low) && std::isfinite(forecast->high)) << length;
      EXPECT_LE(forecast->low, forecast->loss);
      EXPECT_GE(forecast->high, forecast->loss);
    }
  }
}

TEST(Quality, ConstantNegativeAndRisingLossesAreTakenAsTheyAre) {
  const auto constant = made("quality"), negative = made("quality"), rising = made("quality");
  for (int k = 1; k <= 50; ++k) {
    constant->observe({double(k), 3});
    negative->observe({double(k), -10 + exponential(k)});
    rising->observe({double(k), 0.01 * k});
  }
  EXPECT_NEAR(constant->at(1000)->loss, 3, 1e-6);
  EXPECT_NEAR(negative->at(60)->loss, -10 + exponential(60), 0.2);
  EXPECT_GT(rising->at(51)->loss, 0.4);
  EXPECT_LT(rising->at(51)->loss, 0.6);
}

TEST(LossHistory, StaysBoundedAndKeepsTheMean) {
  LossHistory history;
  for (int k = 1; k <= 100'000; ++k) history.add({double(k), 5});
  EXPECT_LE(history.blocks().size(), LossHistory::kMaxBlocks);
  double count = 0;
  for (const auto& block : history.blocks()) {
    EXPECT_DOUBLE_EQ(block.loss, 5);
    count += block.count;
  }
  EXPECT_DOUBLE_EQ(count, 100'000);
}

TEST(IterationCost, GrowsWithTheSizeAndBeginsAnewWhenTheProgramChanges) {
  IterationCost cost;
  EXPECT_FALSE(cost.cpu_s(1));
  for (int i = 1; i <= 50; ++i) cost.add(100 * i, 0.5 * i);
  EXPECT_NEAR(*cost.cpu_s(1000), 5, 1e-9);
  cost.add(100, 50);  // one that was held up is no change
  EXPECT_NEAR(*cost.cpu_s(1000), 5, 1e-9);
  for (int i = 0; i < 3; ++i) cost.add(100, 5);
  EXPECT_NEAR(*cost.cpu_s(1000), 50, 1e-6);
}

TEST(Throughput, FindsTheSerialShareOfMeasuredSpeeds) {
  Throughput throughput;
  for (const double cores : {1.0, 2.0, 4.0, 8.0})
    for (int i = 0; i < 5; ++i) throughput.add(cores, 3 * amdahl_speed(cores, 0.3));
  EXPECT_NEAR(throughput.serial_share(), 0.3, 0.02);
  EXPECT_DOUBLE_EQ(throughput.speed(0.5), 0.5);
}

}  // namespace
}  // namespace tierpilot::quality
