// What is known beside a model's figures: how far off a model like it was, and how fast the host
// is.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "policies/sharing/predict/job_predictor.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "tests/fake_nvml/made_gpus.h"

namespace tierpilot::sharing {
namespace {

using Rows = std::vector<MeasuredTraining>;

JobPredictor predictor_of(const Rows& rows) {
  JobModel model;
  model.gpu = fit_gpu_model(rows);
  return JobPredictor(std::make_shared<const JobModel>(std::move(model)));
}

TEST(Kriging, IsWhatRowsNearbyWereAndNothingFarFromAll) {
  const auto kriging = make_kriging({});
  std::vector<Row> rows;
  std::vector<double> targets;
  for (int i = 0; i < 40; ++i) {
    rows.push_back({static_cast<double>(i), static_cast<double>(i % 4)});
    targets.push_back(i % 2 == 0 ? 1 : -1);
  }
  kriging->fit(rows, targets);
  EXPECT_NEAR(kriging->predict({10, 2}), 1, 0.35);
  EXPECT_NEAR(kriging->predict({11, 3}), -1, 0.35);
  EXPECT_NEAR(kriging->predict({12.1, 0}), kriging->predict({12, 0}), 0.1);
  EXPECT_NEAR(kriging->predict({12, 40}), 0, 1e-6);
}

TEST(Kriging, OfSeveralMeasurementsOfOnePlaceTheMeanCounts) {
  const auto kriging = make_kriging({});
  kriging->fit({{0}, {1}, {1}, {1}, {1}}, {0, 0.4, 0.6, 0.4, 0.6});
  EXPECT_NEAR(kriging->predict({1}), 0.5, 0.06);
}

TEST(Kriging, SaysTheSameWhenReadAndNothingElseIsTaken) {
  const auto kriging = make_kriging({});
  kriging->fit({{0, 1}, {2, 3}, {4, 9}}, {0.1, 0.2, 0.3});
  const auto saved = kriging->saved();
  const auto read = read_regressor(parse_json<nlohmann::json>(saved.dump()), 2);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ((*read)->predict({2, 3.1}), kriging->predict({2, 3.1}));
  EXPECT_FALSE(read_regressor(saved, 3));
  for (const char* field : {"rows", "weights", "means", "scales"}) {
    auto broken = saved;
    broken[field].erase(0);
    EXPECT_FALSE(read_regressor(broken, 2)) << field;
  }
  auto broken = saved;
  broken["rows"][1].push_back(1);
  EXPECT_FALSE(read_regressor(broken, 2));
  broken = saved;
  broken["reach"] = 0;
  EXPECT_FALSE(read_regressor(broken, 2));
}

// No feature tells it, and it is the same on each GPU.
double of_its_own(uint64_t model) {
  return model % 2 == 0 ? 1.6 : 1 / 1.6;
}

TEST(KnownModels, AreForetoldForAnotherGpuByWhatTheyDidOnOne) {
  SeededRandom random(23);
  std::vector<ModelCard> cards;
  for (int i = 0; i < 100; ++i) cards.push_back(drawn_card(random));
  const auto measured = [&](size_t model, const GpuFeatures& gpu) {
    MeasuredTraining row{.architecture = fmt::format("a{}", model % 7), .card = cards[model]};
    row.gpu = gpu;
    row.card.job->load_s = 0;
    row.busy_s = made_busy_s(row.card, gpu) * of_its_own(model);
    row.step_s = row.iteration_s = 1.5 * row.busy_s;
    row.utilisation_milli = 667;
    row.memory_bytes = made_bytes(row.card) * of_its_own(model);
    row.calibration_s = 1e-3;
    return row;
  };
  Rows rows;
  for (size_t model = 0; model < 80; ++model)
    rows.push_back(measured(model, model < 40 ? kOld : kNew));
  const auto predictor = predictor_of(rows);
  const auto errors = [&](size_t from, size_t to) {
    double run = 0, memory = 0;
    for (size_t model = from; model < to; ++model) {
      const auto row = measured(model, kBetween);
      const auto said = predictor.predict(row.card, {.engine = "gpu", .gpu = kBetween});
      run += std::pow(std::log(said.run_s / (1000 * row.iteration_s)), 2);
      memory += std::pow(std::log(said.memory_bytes / row.memory_bytes), 2);
    }
    const auto count = static_cast<double>(to - from);
    return std::pair(std::sqrt(run / count), std::sqrt(memory / count));
  };
  const auto known = errors(0, 80), unknown = errors(80, 100);
  EXPECT_LT(known.first, 0.6 * unknown.first);
  EXPECT_LT(known.second, 0.6 * unknown.second);
}

// Half of the trainings on a host that is half as fast: what it calls takes it twice as long.
Rows on_two_hosts(double ops_per_s) {
  auto rows = made_trainings({kOld, kNew});
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& row = rows[i];
    const double slower = i / 2 % 2 == 0 ? 2 : 1;
    row.calibration_s = slower * 1e-3;
    row.host_ops_per_s = ops_per_s / slower;
    row.step_s = std::max(slower * 40e-6 * static_cast<double>(row.card.launches), row.busy_s);
    row.iteration_s = std::max(row.step_s, *row.card.job->load_s);
  }
  return rows;
}

TEST(Hosts, ASlowOneTakesLongerForCallsAndNotForWhatTheGpuDoes) {
  const auto predictor = predictor_of(on_two_hosts(8e9));
  const auto run_s = [&](const ModelCard& card, double host_speed) {
    return predictor.predict(card, {.engine = "gpu", .gpu = kNew, .host_speed = host_speed}).run_s;
  };
  const auto small = made_card(1e8, 1e5, 40), large = made_card(8e11, 1e6, 5);
  EXPECT_GT(run_s(small, 0.5), 1.5 * run_s(small, 1));
  EXPECT_LT(run_s(large, 0.5), 1.15 * run_s(large, 1));
  // No node is so slow: its figure was none.
  EXPECT_LE(run_s(small, 1e-6), 6 * run_s(small, 1));
}

TEST(Hosts, AreKnownByWhatNodesMeasureOfTheirs) {
  EXPECT_NEAR(predictor_of(on_two_hosts(8e9)).gpu_host_ops_per_s() / 4e9, 1, 0.01)
      << "of the slow half, where the median is";
  EXPECT_EQ(predictor_of(on_two_hosts(0)).gpu_host_ops_per_s(), 0);
  auto unknown = made_trainings({kOld, kNew});
  for (auto& row : unknown) row.calibration_s = 0;
  EXPECT_GT(
      predictor_of(unknown).predict(made_card(1e9, 1e6, 10), {.engine = "gpu", .gpu = kOld}).run_s,
      0);
}

}  // namespace
}  // namespace tierpilot::sharing
