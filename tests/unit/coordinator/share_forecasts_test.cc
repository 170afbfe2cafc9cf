#include "coordinator/core/sharing/share_forecasts.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "policies/sharing/card/card_reader.h"
#include "policies/sharing/card/model_card.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "tests/fake_nvml/made_gpus.h"

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
  auto json = nlohmann::ordered_json::parse(spec_.share.model_card);
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
  TaskSpec spec_ = named("train");
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
  auto plain = named("plain");
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
  auto plain = named("plain");
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
  auto spec = named("a");
  spec.share.engine = Engine::kGpu;
  auto json = sharing::card_json(sharing::made_card(1e8, 1e5, 4));
  json["schema"] = 1;
  json["kind"] = "model card";
  spec.share.model_card = json.dump();
  return spec;
}

TEST(ShareForecasts, APredictorThatKnowsNoGpuSaysSo) {
  auto spec = with_a_card_on_gpus();
  ShareForecasts forecasts(shipped(false));
  const auto said = forecasts.of(spec, {.cores = 1, .speed = {1, 0}, .gpu = sharing::kOld}).by;
  EXPECT_NE(said.find("'cpu', not 'gpu'"), std::string::npos) << said;
  spec.share.model_card = "{";
  EXPECT_NE(ShareForecasts(nullptr).of(spec).by.find("no predictor"), std::string::npos);
  EXPECT_NE(forecasts.of(spec).by.find("cannot be read"), std::string::npos);
}

// A GPU that nobody knows is no core.
TEST(ShareForecasts, ACardTellsOfTheEngineThatIsAskedFor) {
  ShareForecasts forecasts(shipped(true));
  const auto on_gpu = with_a_card_on_gpus();
  auto on_cores = on_gpu;
  on_cores.share.engine = Engine::kCpu;
  ASSERT_EQ(forecasts.of(on_cores).by, "its model card");
  const auto forecast = forecasts.of(on_gpu);
  EXPECT_NE(forecast.by.find("no GPU that is shared is up"), std::string::npos) << forecast.by;
  EXPECT_EQ(forecast.predicted.run_s, 0);
}

TEST(ShareForecasts, TheInstalledPredictorTellsOfTheGpusThatItKnowsAndOfNoneFarFromThem) {
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
