#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/pairs/pair_law.h"
#include "tests/unit/sharing/traces.h"

namespace tierpilot::sharing {
namespace {

PairJob job(const char* model, double alone, double batch = 32) {
  return {.model = model, .batch = batch, .alone = alone};
}

// What is kept, by what is known before anything is trained.
double kept(const PairData& data, size_t sample) {
  return 1 / (1 + std::exp(ln_longer(data.samples[sample], GpuParts(data))));
}

// Jobs at several batches on two cards: "card" becomes 2.6 times as fast, "host" not at all. Of
// each card and batch three samples: "card" beside another, beside "host", and "host" beside
// "card".
PairData on_two_cards() {
  PairData data;
  for (const auto& [gpu, faster] : {std::pair{"k80", 1.0}, {"p100", 2.6}})
    for (const double batch : {16.0, 32.0, 64.0, 128.0}) {
      const auto card = job("card", 160 / batch * faster, batch);
      const auto host = job("host", 160 / batch, batch);
      for (const auto& [a, b] : {std::pair{card, card}, {card, host}, {host, card}})
        data.samples.push_back({gpu, a, b, 0.5});
    }
  return data;
}

TEST(GpuParts, WhoIsFasterOnAFasterCardIsOnTheCard) {
  const auto data = on_two_cards();
  const GpuParts parts(data);
  EXPECT_GT(parts.of("p100", job("card", 13)).mean, 0.8);
  EXPECT_LT(parts.of("p100", job("host", 5)).mean, 0.5);
}

TEST(GpuParts, AFasterCardHasLessOfAStep) {
  const auto data = on_two_cards();
  const GpuParts parts(data);
  for (const char* model : {"card", "host"})
    EXPECT_LT(parts.of("p100", job(model, 5)).mean, parts.of("k80", job(model, 5)).mean) << model;
}

TEST(GpuParts, WhoTakesManySamplesASecondWaitsForItsHost) {
  PairData data;
  data.samples.push_back({"p100", job("few", 5, 1), job("many", 5, 8192), 0.5});
  data.samples.push_back({"p100", job("untold", 5, 0), job("many", 5, 8192), 0.5});
  const GpuParts parts(data);
  EXPECT_GT(parts.of("p100", job("few", 5, 1)).mean,
            parts.of("p100", job("many", 5, 8192)).mean + 0.1);
  EXPECT_GT(parts.of("p100", job("untold", 5, 0)).mean,
            parts.of("p100", job("many", 5, 8192)).mean + 0.1);
}

TEST(PairLaw, TwoOfAKindOnTheCardKeepHalf) {
  const auto data = on_two_cards();
  EXPECT_NEAR(kept(data, 0), 0.5, 0.05);
}

TEST(PairLaw, WhoWaitsForItsHostLeavesTheCardToOthers) {
  const auto data = on_two_cards();
  for (size_t i = 0; i < data.samples.size(); i += 3)
    EXPECT_GT(kept(data, i + 1) + kept(data, i + 2), 2 * kept(data, i) + 0.1) << i;
}

TEST(PairLaw, WhoHasTheLongerStepsKeepsMore) {
  PairData data;
  data.samples.push_back({"p100", job("long", 1), job("short", 20), 0.5});
  data.samples.push_back({"p100", job("short", 20), job("long", 1), 0.5});
  EXPECT_GT(kept(data, 0), kept(data, 1) + 0.2);
}

TEST(PairLaw, SpeedsTogetherAreNotLookedAt) {
  auto data = on_two_cards();
  const auto rows = pair_rows(data);
  for (auto& sample : data.samples) sample.retained = 0.123;
  EXPECT_EQ(pair_rows(data), rows);
}

TEST(PairLaw, CardsAndBatchesOfWhichNothingIsKnownGiveNumbers) {
  PairData data;
  data.samples.push_back({"", job("m", 1e9, 0), job("n", 1e-300, 1e9), 0.5});
  data.samples.push_back({"another", job("m", 1e-300, 0), job("n", 1e9, 1e9), 0.5});
  for (size_t i = 0; i < data.samples.size(); ++i) {
    EXPECT_GE(kept(data, i), 0);
    EXPECT_LE(kept(data, i), 1);
  }
}

TEST(PairLaw, WhereItDoesNotHoldTheMedianIsTaken) {
  const auto law = make_pair_law(0);
  law->fit({{0}, {1}, {2}, {-1}}, {0.9, 0.9, 0.9, 0.9});
  EXPECT_NEAR(law->predict({2}), 0.9, 1e-9);
  // And not where the law holds.
  law->fit({{0}, {1}, {2}, {-1}}, {0.5, 0.269, 0.119, 0.731});
  EXPECT_NEAR(law->predict({-2}), 0.881, 0.02);
}

double error_on(const nlohmann::ordered_json& study, const std::string& split) {
  for (const auto& score : study["scores"])
    if (score["split"] == split && score["predictor"] == "default") return score["error"];
  return NAN;
}

TEST(PairLaw, PairsOfCardsAndModelsNeverSeenAreWithinTheGoal) {
  const auto data = kTraces / "s3_gavel_pairs.csv";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << data << " is not here";
  const auto value = evaluate_predictors(data, {});
  ASSERT_TRUE(value) << value.error().message;
  const auto& study = (*value)["studies"][0];
  for (const char* split : {"card", "model", "card and models"})
    EXPECT_LE(error_on(study, split), study["goal"]) << split;
}

}  // namespace
}  // namespace tierpilot::sharing
