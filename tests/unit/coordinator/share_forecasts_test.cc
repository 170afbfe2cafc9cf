#include "coordinator/core/sharing/share_forecasts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/card/model_card.h"
#include "policies/sharing/predict/jobs/job_model.h"

namespace tierpilot {
namespace {

TEST(ShareForecasts, RunsOfANameTellHowLongItStarts) {
  TaskSpec spec;
  spec.name = "a";
  spec.share.wanted = true;
  ShareForecasts forecasts(nullptr);
  forecasts.ended(spec, {}, 300, 1 << 20, 40, 6, 0);
  const auto said = forecasts.of(spec);
  EXPECT_TRUE(said.of_training);
  EXPECT_EQ(said.predicted.start_s, 6);
  EXPECT_EQ(said.predicted.run_s, 40);
}

TEST(ShareForecasts, WhereThereAreTooManyNamesWhatEndedLongestAgoGoes) {
  TaskSpec spec;
  spec.share.wanted = true;
  ShareForecasts forecasts(nullptr);
  for (size_t i = 0; i < ShareForecasts::kMostNames; ++i) {
    spec.name = fmt::format("job-{}", i);
    EXPECT_FALSE(forecasts.ended(spec, {}, 300, 1, 40, {}, static_cast<int64_t>(i)).forgotten);
  }
  spec.name = "job-0";
  forecasts.ended(spec, {}, 300, 1, 40, {}, 1'000'000);
  spec.name = "new";
  const auto learned = forecasts.ended(spec, {}, 300, 1, 50, {}, 1'000'001);
  ASSERT_TRUE(learned.forgotten);
  EXPECT_EQ(learned.forgotten->second, "job-1");
  EXPECT_EQ(forecasts.of(spec).predicted.run_s, 50);
}

TEST(ShareForecasts, WhatANameDoesOnCoresTellsNothingOfGpus) {
  TaskSpec spec;
  spec.name = "a";
  spec.share.wanted = true;
  ShareForecasts forecasts(nullptr);
  forecasts.ended(spec, {}, 300, 1 << 20, 40, {}, 0);
  spec.share.engine = Engine::kGpu;
  EXPECT_EQ(forecasts.of(spec).predicted.run_s, 0);
  forecasts.ended(spec, {}, 700, 1 << 20, 4, {}, 0);
  EXPECT_EQ(forecasts.of(spec).predicted.run_s, 4);
  spec.share.engine = Engine::kCpu;
  EXPECT_EQ(forecasts.of(spec).predicted.run_s, 40);
}

TEST(ShareForecasts, WhoSaysNothingIsTakenForAWholeUnit) {
  TaskSpec spec;
  spec.name = "a";
  spec.share.wanted = true;
  const auto said = ShareForecasts(nullptr).of(spec);
  EXPECT_EQ(said.predicted.milli, 1000u);
  EXPECT_EQ(said.predicted.run_s, 0);
}

TEST(ShareForecasts, RunsOfTheNameTellMoreThanTheUser) {
  ShareForecasts forecasts(nullptr);
  TaskSpec spec;
  spec.name = "a";
  spec.share.wanted = true;
  spec.share.estimate_ms = 500'000;
  forecasts.ended(spec, {}, 300, 1 << 20, 40, {}, 0);
  const auto one = forecasts.of(spec);
  EXPECT_NEAR(one.predicted.milli, 330, 1);
  EXPECT_EQ(one.predicted.run_s, 40);
  EXPECT_GT(one.predicted.run_upper_s, 50);
  for (int i = 0; i < 5; ++i) forecasts.ended(spec, {}, 300, 1 << 20, 44, {}, 0);
  EXPECT_LT(forecasts.of(spec).predicted.run_upper_s, 50) << "several say more than one";
  spec.share.milli = 700;
  EXPECT_EQ(forecasts.of(spec).predicted.milli, 700u) << "asked for by its user";
  spec.name = "b";
  EXPECT_EQ(forecasts.of(spec).predicted.run_s, 500);
}

TaskSpec named(const std::string& name) {
  TaskSpec spec;
  spec.name = name;
  spec.share.wanted = true;
  return spec;
}

// 95 of 100 take no more than the most of twenty: once seen, it counts for twenty more at least.
TEST(ShareForecasts, WhatOneRunOfANameTookIsForgottenInTime) {
  ShareForecasts forecasts(nullptr);
  const auto spec = named("a");
  const auto runs = [&](int count, uint64_t memory_bytes, double run_s) {
    for (int i = 0; i < count; ++i) forecasts.ended(spec, {}, 300, memory_bytes, run_s, {}, 0);
  };
  runs(30, 1 << 20, 40);
  runs(1, 1 << 30, 4'000);
  runs(19, 1 << 20, 40);
  EXPECT_EQ(forecasts.of(spec).predicted.memory_bytes, 1u << 30);
  EXPECT_GT(forecasts.of(spec).predicted.run_upper_s, 4'000);
  runs(21, 1 << 20, 40);
  EXPECT_EQ(forecasts.of(spec).predicted.memory_bytes, 1u << 20);
  EXPECT_LT(forecasts.of(spec).predicted.run_upper_s, 100);
}

// As where the data has doubled.
TEST(ShareForecasts, ANameWhoseRunsHaveChangedIsForetoldByTheNewOnes) {
  ShareForecasts forecasts(nullptr);
  const auto spec = named("a");
  for (int i = 0; i < 1'000; ++i) forecasts.ended(spec, {}, 300, 1, 40, {}, 0);
  for (int i = 0; i < 60; ++i) forecasts.ended(spec, {}, 300, 1, 80, {}, 0);
  EXPECT_NEAR(forecasts.of(spec).predicted.run_s, 80, 4);
}

// Half of its time it keeps a core busy, the other half it waits for something else.
TEST(ShareForecasts, ARunOfANameIsForetoldForCoresOfAnotherSpeed) {
  ShareForecasts forecasts(nullptr);
  const auto spec = named("a");
  forecasts.ended(spec, {.cores = 1, .speed = {1, 0}}, 500, 1, 40, {}, 0);
  const auto fast = forecasts.of(spec, {.cores = 1, .speed = {2, 0}}).predicted;
  EXPECT_NEAR(fast.run_s, 20 / 2.0 + 20, 1e-9);
  EXPECT_NEAR(fast.milli, 1000 * 10 / 30.0 * 1.1, 2);
  const auto slow = forecasts.of(spec, {.cores = 1, .speed = {0.5, 0}}).predicted;
  EXPECT_NEAR(slow.run_s, 20 * 2 + 20, 1e-9);
  // What it shows there tells the same.
  forecasts.ended(spec, {.cores = 1, .speed = {2, 0}}, 333, 1, 30, {}, 1);
  EXPECT_NEAR(forecasts.of(spec).predicted.run_s, 40, 0.2);
}

// It keeps one core busy, whatever else its unit has.
TEST(ShareForecasts, OfAUnitOfSeveralCoresItUsesAPart) {
  ShareForecasts forecasts(nullptr);
  const auto spec = named("a");
  forecasts.ended(spec, {.cores = 4, .speed = {1, 0}}, 250, 1, 40, {}, 0);
  EXPECT_NEAR(forecasts.of(spec, {.cores = 4, .speed = {1, 0}}).predicted.milli, 275, 1);
  EXPECT_NEAR(forecasts.of(spec, {.cores = 2, .speed = {1, 0}}).predicted.milli, 550, 1);
  EXPECT_EQ(forecasts.of(spec, {.cores = 1, .speed = {1, 0}}).predicted.milli, 1000u);
  EXPECT_NEAR(forecasts.of(spec, {.cores = 2, .speed = {1, 0}}).predicted.run_s, 40, 1e-9);
}

class ByCard : public ::testing::Test {
 protected:
  ByCard() {
    std::ifstream file(TEST_PREDICTOR);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    auto read = sharing::JobPredictor::read(text);
    EXPECT_TRUE(read) << TEST_PREDICTOR;
    forecasts_ = std::make_unique<ShareForecasts>(
        std::make_shared<const sharing::JobPredictor>(std::move(*read)));
    sharing::ModelCard card{.batch = 32,
                            .input_elements = 1e4,
                            .parameters = 1e5,
                            .parameter_bytes = 4e5,
                            .parameter_tensors = 4,
                            .activation_bytes = 1e6,
                            .traffic_bytes = 4e6,
                            .flops = 1e8,
                            .depth = 4,
                            .launches = 4};
    card.operators["MatMul"] = {2, 1e4, 2e4, 1e5, 1e5, 1e8};
    card.operators["Activation"] = {2, 1e4, 2e4, 2e4, 0, 2e4};
    card.job = sharing::JobCard{.iterations = 1000, .optimizer = "SGD", .threads = 1};
    spec_ = named("train");
    auto json = sharing::card_json(card);
    json["schema"] = 1;
    json["kind"] = "model card";
    spec_.share.model_card = json.dump();
    const auto again = sharing::read_card(spec_.share.model_card);
    EXPECT_TRUE(again) << again.error().message;
    EXPECT_EQ(forecasts_->of(spec_).by, "its model card");
  }
  // Without its start, of which no card tells.
  double run_s(const UnitFeatures& unit, const RunCorrection& correction = {}) const {
    const auto predicted = forecasts_->of(spec_, unit, correction).predicted;
    return predicted.run_s - predicted.start_s;
  }

  std::unique_ptr<ShareForecasts> forecasts_;
  TaskSpec spec_;
};

TEST_F(ByCard, AFasterCoreIsDoneSooner) {
  EXPECT_NEAR(run_s({.cores = 1, .speed = {2, 0}}), run_s({}) / 2, 0.01 * run_s({}));
  EXPECT_NEAR(forecasts_->run_by_card_s(spec_, {.cores = 1, .speed = {0.5, 0}}), 2 * run_s({}),
              0.01 * run_s({}));
}

TEST_F(ByCard, OfAUnitOfSeveralCoresItUsesAPart) {
  const auto one = forecasts_->of(spec_, {.cores = 1, .speed = {1, 0}}).predicted;
  const auto four = forecasts_->of(spec_, {.cores = 4, .speed = {1, 0}}).predicted;
  EXPECT_NEAR(four.milli, one.milli / 4.0, 1);
  EXPECT_EQ(four.run_s, one.run_s) << "it has one thread";
}

TEST_F(ByCard, RunsOfItsModelCorrectItAndMakeItMoreCertain) {
  const auto before = forecasts_->of(spec_).predicted;
  const RunCorrection known{.ln = std::log(1.3), .sd = 0.06, .runs = 2};
  const UnitFeatures core{.cores = 1, .speed = {1, 0.05}}, unsure{.cores = 1, .speed = {1, 0.15}};
  const auto after = forecasts_->of(spec_, core, known);
  EXPECT_LT(after.predicted.run_upper_s,
            forecasts_->of(spec_, unsure, known).predicted.run_upper_s);
  EXPECT_NEAR(run_s({}, known), 1.3 * run_s({}), 0.01 * run_s({}));
  EXPECT_EQ(after.by, "its model card, corrected by 2 runs of its model");
  EXPECT_LT(after.predicted.run_upper_s / after.predicted.run_s, before.run_upper_s / before.run_s);
  EXPECT_GT(after.predicted.run_upper_s, after.predicted.run_s);
}

TEST_F(ByCard, WhoFirstTellsOfIterationsAfterAnHourSpoilsNoForecasts) {
  const auto before = forecasts_->of(spec_).predicted;
  for (int i = 0; i < 5; ++i) forecasts_->began(3600);
  EXPECT_EQ(forecasts_->of(spec_).predicted.run_s, before.run_s);
  for (int i = 0; i < 5; ++i) forecasts_->began(30);
  EXPECT_GT(forecasts_->of(spec_).predicted.run_s, before.run_s + 10);
}

// Whatever it is called and however long it trains; another one is another one.
TEST_F(ByCard, AModelIsKnownByItsCard) {
  const auto model = forecasts_->model_of(spec_);
  EXPECT_FALSE(model.empty());
  auto same = spec_, other = spec_;
  same.name = "again";
  auto json = parse_json<nlohmann::ordered_json>(spec_.share.model_card);
  json["job"]["iterations"] = 77;
  same.share.model_card = json.dump();
  json["operators"]["MatMul"]["flops"] = 2e8;
  other.share.model_card = json.dump();
  EXPECT_EQ(forecasts_->model_of(same), model);
  EXPECT_FALSE(forecasts_->model_of(other).empty());
  EXPECT_NE(forecasts_->model_of(other), model);
  EXPECT_TRUE(forecasts_->model_of(named("none")).empty());
}

TEST_F(ByCard, WithoutACardNothingIsToldByOne) {
  EXPECT_EQ(forecasts_->run_by_card_s(named("other"), {}), 0);
  auto broken = named("broken");
  broken.share.model_card = "{";
  EXPECT_EQ(forecasts_->run_by_card_s(broken, {}), 0);
}

}  // namespace
}  // namespace tierpilot
