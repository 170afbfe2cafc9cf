#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "coordinator/core/sharing/share_forecasts.h"
#include "policies/sharing/card/model_card.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "tests/fake_nvml/made_gpus.h"

namespace tierpilot {
namespace {

TaskSpec of_name(const std::string& name) {
  TaskSpec spec;
  spec.name = name;
  spec.share.wanted = true;
  return spec;
}

// A predictor that two kinds of GPUs were measured for.
class ByCardOnGpu : public ::testing::Test {
 protected:
  ByCardOnGpu() : forecasts_(predictor()) {
    spec_.share.engine = Engine::kGpu;
    auto json = sharing::card_json(card_);
    json["schema"] = 1;
    json["kind"] = "model card";
    spec_.share.model_card = json.dump();
  }
  static std::shared_ptr<const sharing::JobPredictor> predictor() {
    static const auto kPredictor = [] {
      sharing::JobModel model;
      model.gpu = sharing::fit_gpu_model(sharing::made_trainings({sharing::kOld, sharing::kNew}));
      return std::make_shared<const sharing::JobPredictor>(
          std::make_shared<const sharing::JobModel>(std::move(model)));
    }();
    return kPredictor;
  }
  ShareForecast of(const sharing::GpuFeatures& gpu, double speed = 1,
                   const RunCorrection& correction = {}) const {
    return forecasts_.of(spec_, {.cores = 1, .speed = {speed, 0.05}, .gpu = gpu}, correction);
  }

  // It keeps the GPU busy for a part of the time that its data takes.
  const sharing::ModelCard card_ = sharing::made_card(1e11, 1e6, 10, 0.2);
  TaskSpec spec_ = of_name("train");
  ShareForecasts forecasts_;
};

TEST_F(ByCardOnGpu, UseMemoryAndTimeAreForetoldForEachKind) {
  const auto on_old = of(sharing::kOld), on_new = of(sharing::kNew);
  EXPECT_EQ(on_old.by, "its model card");
  const double milli = 1000 * sharing::made_busy_s(card_, sharing::kOld) / 0.2;
  EXPECT_GE(on_old.predicted.milli, 0.8 * milli);
  EXPECT_LE(on_old.predicted.milli, 2 * milli) << "an upper figure";
  EXPECT_LT(on_new.predicted.milli, 0.8 * on_old.predicted.milli);
  EXPECT_GT(static_cast<double>(on_old.predicted.memory_bytes), 0.9 * sharing::made_bytes(card_));
  EXPECT_NEAR(on_old.predicted.run_s - on_old.predicted.start_s, 200, 20);
  EXPECT_GT(on_old.predicted.run_upper_s, on_old.predicted.run_s);
}

// Its share is by an upper figure; what neighbours are thought to take is by the middle one, also
// where its user says what it is to have.
TEST_F(ByCardOnGpu, UseIsForetoldAsItIsAlone) {
  const double milli = 1000 * sharing::made_busy_s(card_, sharing::kOld) / 0.2;
  EXPECT_NEAR(of(sharing::kOld).use_milli, milli, 0.2 * milli);
  spec_.share.milli = 77;
  EXPECT_NEAR(of(sharing::kOld).use_milli, milli, 0.2 * milli);
}

TEST_F(ByCardOnGpu, WhatItsUserAsksForIsNoUse) {
  auto plain = of_name("plain");
  plain.share.engine = Engine::kGpu;
  plain.share.milli = 300;
  plain.share.estimate_ms = 10'000;
  EXPECT_EQ(forecasts_.of(plain, {.gpu = sharing::kOld}).use_milli, 0);
  forecasts_.ended(plain, {.cores = 1, .speed = {1, 0}, .gpu = sharing::kOld}, 200, 0, 50, {}, 0);
  const auto again = forecasts_.of(plain, {.cores = 1, .speed = {1, 0}, .gpu = sharing::kOld});
  EXPECT_EQ(again.predicted.milli, 300U);
  EXPECT_NEAR(again.use_milli, 200, 1) << "a run has shown it";
}

// An upper figure that no GPU has would wait for ever.
TEST_F(ByCardOnGpu, WhatUsuallyFitsIsNotLeftOut) {
  const auto at_most = of(sharing::kOld).predicted.memory_bytes;
  auto tight = sharing::kOld, small = sharing::kOld;
  tight.memory_bytes = at_most - 1;
  EXPECT_EQ(of(tight).predicted.memory_bytes, at_most - 1);
  small.memory_bytes = at_most / 10;
  EXPECT_EQ(of(small).predicted.memory_bytes, at_most) << "it does not fit at all";
}

TEST_F(ByCardOnGpu, RunsCorrectIt) {
  const auto corrected = of(sharing::kOld, 1, {.ln = std::log(1.3), .sd = 0.06, .runs = 2});
  EXPECT_EQ(corrected.by, "its model card, corrected by 2 runs of its model");
  EXPECT_NEAR(corrected.predicted.run_s - corrected.predicted.start_s, 1.3 * 200, 30);
  EXPECT_LT(of(sharing::kOld, 2).predicted.milli, 0.8 * of(sharing::kOld).predicted.milli);
}

// As before: what ran of its name tells, else its user; and it is said why.
TEST_F(ByCardOnGpu, WhatIsUnlikeIsLeftToOthers) {
  const auto on_none = of({});
  EXPECT_NE(on_none.by.find("its model card tells nothing: "), std::string::npos) << on_none.by;
  spec_.share.milli = 300;
  const auto asked = of({.name = "Silent"});
  EXPECT_EQ(asked.by.find("its user; its model card tells nothing: the GPU Silent"), 0u)
      << asked.by;
  EXPECT_EQ(asked.predicted.milli, 300u);
  spec_.share.milli = 0;
  forecasts_.ended(spec_, {.cores = 1, .speed = {1, 0}, .gpu = {.name = "Silent"}}, 400, 0, 50, {},
                   0);
  EXPECT_EQ(of({.name = "Silent"}).by, "a run of its name");
  EXPECT_NEAR(of({.name = "Silent"}).predicted.run_s, 50, 1e-9);
}

// How fast a kind is thought to be is of what cards foretell: what a name did is known as it was.
TEST_F(ByCardOnGpu, RunsOfANameAreAsTheyWere) {
  auto plain = of_name("plain");
  plain.share.engine = Engine::kGpu;
  forecasts_.ended(plain, {.cores = 1, .speed = {1.5, 0}, .gpu = sharing::kOld}, 400, 0, 50, {}, 0);
  const auto again = forecasts_.of(plain, {.cores = 1, .speed = {1.5, 0}, .gpu = sharing::kOld});
  EXPECT_NEAR(again.predicted.run_s, 50, 1e-9);
  EXPECT_NEAR(again.predicted.milli, 440, 1);
}

// The installed predictor, with and without what it knows of GPUs.
std::shared_ptr<const sharing::JobPredictor> shipped(bool of_gpus) {
  std::ifstream file(TEST_PREDICTOR);
  auto json = nlohmann::json::parse(file);
  EXPECT_TRUE(json.contains("gpu"));
  if (!of_gpus) json.erase("gpu");
  auto read = sharing::JobPredictor::read(json.dump());
  EXPECT_TRUE(read) << TEST_PREDICTOR;
  return std::make_shared<const sharing::JobPredictor>(std::move(*read));
}

TaskSpec with_a_card_on_gpus() {
  auto spec = of_name("a");
  spec.share.engine = Engine::kGpu;
  auto json = sharing::card_json(sharing::made_card(1e8, 1e5, 4));
  json["schema"] = 1;
  json["kind"] = "model card";
  spec.share.model_card = json.dump();
  return spec;
}

TEST(ShareForecastsOnGpu, APredictorThatKnowsNoGpuSaysSo) {
  auto spec = with_a_card_on_gpus();
  ShareForecasts forecasts(shipped(false));
  const auto said = forecasts.of(spec, {.cores = 1, .speed = {1, 0}, .gpu = sharing::kOld}).by;
  EXPECT_NE(said.find("'cpu', not 'gpu'"), std::string::npos) << said;
  spec.share.model_card = "{";
  EXPECT_NE(ShareForecasts(nullptr).of(spec).by.find("no predictor"), std::string::npos);
  EXPECT_NE(forecasts.of(spec).by.find("cannot be read"), std::string::npos);
}

// A GPU that nobody knows is no core.
TEST(ShareForecastsOnGpu, ACardTellsOfTheEngineThatIsAskedFor) {
  ShareForecasts forecasts(shipped(true));
  const auto on_gpu = with_a_card_on_gpus();
  auto on_cores = on_gpu;
  on_cores.share.engine = Engine::kCpu;
  ASSERT_EQ(forecasts.of(on_cores).by, "its model card");
  const auto forecast = forecasts.of(on_gpu);
  EXPECT_NE(forecast.by.find("no GPU that is shared is up"), std::string::npos) << forecast.by;
  EXPECT_EQ(forecast.predicted.run_s, 0);
}

TEST(ShareForecastsOnGpu, TheInstalledPredictorTellsOfTheGpusThatItKnowsAndOfNoneFarFromThem) {
  const auto predictor = shipped(true);
  ShareForecasts forecasts(predictor);
  const auto spec = with_a_card_on_gpus();
  ASSERT_EQ(predictor->gpus().size(), 2U);
  const auto on = [&](const sharing::GpuFeatures& gpu) {
    return forecasts.of(spec, {.cores = 1, .speed = {1, 0}, .gpu = gpu});
  };
  for (const auto& gpu : predictor->gpus()) EXPECT_EQ(on(gpu).by, "its model card") << gpu.name;
  EXPECT_NE(on(sharing::kOld).by.find("the GPU Old has "), std::string::npos)
      << on(sharing::kOld).by;
}

}  // namespace
}  // namespace tierpilot
