// Predictions of recorded curves are numbers, or it is said why there are none.
#include "policies/sim/quality/prediction_trial.h"

#include <gtest/gtest.h>

#include <cmath>

#include "policies/quality/predictor.h"

namespace tierpilot::sim {
namespace {

std::vector<CurveTrial> trials_of(double scale) {
  LossCurve curve{.run = "r", .family = "f", .points = {}, .seconds = {}};
  for (int i = 1; i <= 300; ++i)
    curve.points.push_back({double(i), scale * (1 + 1.0 / i + 0.1 * (i % 3))});
  const auto names = quality::predictor_names();
  const auto trials =
      try_predictors({curve}, std::vector<std::string>(names.begin(), names.end()), {0.5});
  EXPECT_TRUE(trials) << trials.error().message;
  return trials.value_or(std::vector<CurveTrial>{});
}

size_t predictions_in(const CurveTrial& trial) {
  size_t count = 0;
  for (const auto& of_predictor : trial.predictions)
    for (const auto& prediction : of_predictor) {
      ++count;
      for (const double figure :
           {prediction.loss, prediction.low, prediction.high, prediction.error})
        EXPECT_TRUE(std::isfinite(figure)) << figure;
    }
  return count;
}

TEST(PredictionTrial, OfLossesInReachNothingIsLeftOut) {
  for (const double scale : {1e-30, 1.0, 1e38}) {
    const auto trial = trials_of(scale).at(0);
    EXPECT_EQ(trial.skipped + trial.left_out, "") << scale;
    EXPECT_EQ(predictions_in(trial), 3 * quality::predictor_names().size()) << scale;
  }
}

TEST(PredictionTrial, LossesBeyondSumsAreNamedAndNotPredicted) {
  for (const double scale : {1e101, 1e160, 1e307}) {
    const auto trial = trials_of(scale).at(0);
    EXPECT_EQ(predictions_in(trial), 0U) << scale;
    EXPECT_NE(trial.left_out.find("its losses are as large as"), std::string::npos) << scale;
    EXPECT_TRUE(std::isfinite(trial.noise_floor)) << scale;
  }
}

TEST(PredictionTrial, WhereNoLossWasKnownThatIsSaid) {
  LossCurve curve{.run = "r", .family = "f", .points = {}, .seconds = {}};
  for (int i = 1; i <= 20; ++i) curve.points.push_back({double(i), i > 10 ? 1.0 : NAN});
  const auto trials = try_predictors({curve}, {"quality", "published"}, {0.5});
  ASSERT_TRUE(trials) << trials.error().message;
  EXPECT_EQ(predictions_in(trials->at(0)), 0U);
  EXPECT_NE(trials->at(0).left_out.find("before that point"), std::string::npos);
}

}  // namespace
}  // namespace tierpilot::sim
