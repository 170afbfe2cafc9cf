// Trainings on GPUs: a made law of how long they take, by what a GPU can do, is learned from a few
// kinds of GPUs and holds for another one.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/text/json_text.h"
#include "policies/sharing/predict/evaluate.h"
#include "policies/sharing/predict/gpu_kinds.h"
#include "policies/sharing/predict/job_predictor.h"
#include "policies/sharing/predict/jobs/card_rows.h"
#include "policies/sharing/predict/jobs/job_model.h"
#include "policies/sharing/predict/jobs/job_study.h"
#include "tests/fake_nvml/made_gpus.h"
#include "tests/unit/sharing/error_of.h"

namespace tierpilot::sharing {
namespace {

std::shared_ptr<const JobModel> model_of(const std::vector<GpuFeatures>& gpus) {
  JobModel model;
  model.gpu = fit_gpu_model(made_trainings(gpus));
  return std::make_shared<const JobModel>(std::move(model));
}

const std::shared_ptr<const JobModel>& model_of_two() {
  static const auto kModel = model_of({kOld, kNew});
  return kModel;
}

JobPrediction said(const ModelCard& card, const GpuFeatures& gpu, double speed = 1) {
  return JobPredictor(model_of_two())
      .predict(card, {.engine = "gpu", .relative_speed = speed, .gpu = gpu});
}

struct Errors {
  double run = 0, milli = 0, memory = 0;  // root mean squares of logarithms
  int run_over = 0, memory_over = 0, count = 0;
};

Errors errors_on(const GpuFeatures& gpu) {
  Errors errors;
  SeededRandom random(11);
  for (errors.count = 0; errors.count < 200; ++errors.count) {
    const auto card = drawn_card(random);
    const auto prediction = said(card, gpu);
    EXPECT_FALSE(prediction.unlike) << prediction.why;
    const double iteration_s = made_iteration_s(card, gpu);
    const double milli = std::clamp(1000 * made_busy_s(card, gpu) / iteration_s, 1.0, 1000.0);
    errors.run += std::pow(std::log(prediction.run_s / (1000 * iteration_s)), 2);
    errors.milli += std::pow(std::log(prediction.milli / milli), 2);
    errors.memory += std::pow(std::log(prediction.memory_bytes / made_bytes(card)), 2);
    errors.run_over += 1000 * iteration_s > prediction.run_upper_s;
    errors.memory_over += made_bytes(card) > static_cast<double>(prediction.memory_upper_bytes);
  }
  for (auto* sum : {&errors.run, &errors.milli, &errors.memory})
    *sum = std::sqrt(*sum / errors.count);
  return errors;
}

TEST(GpuPredictor, FindsUseMemoryAndTimeOfTrainingsOnAGpuThatWasMeasured) {
  const auto errors = errors_on(kNew);
  EXPECT_LT(errors.run, 0.25);
  EXPECT_LT(errors.milli, 0.35);
  EXPECT_LT(errors.memory, 0.15);
  EXPECT_LT(errors.run_over, errors.count / 8);
  EXPECT_LT(errors.memory_over, errors.count / 20);
}

TEST(GpuPredictor, ItsFeaturesTellOfAGpuThatWasNot) {
  const auto errors = errors_on(kBetween);
  EXPECT_LT(errors.run, 0.3);
  EXPECT_LT(errors.milli, 0.35);
  // A card that keeps the GPU busy, where it is the GPU that counts.
  const auto busy = made_card(8e11, 1e6, 10);
  EXPECT_GT(said(busy, kOld).run_s, 1.15 * said(busy, kBetween).run_s);
  EXPECT_GT(said(busy, kBetween).run_s, 1.08 * said(busy, kNew).run_s);
}

TEST(GpuPredictor, WhatWasCorrectedForTheGpuCounts) {
  const auto card = made_card(8e11, 1e6, 10);
  EXPECT_NEAR(said(card, kOld, 2).run_s, said(card, kOld).run_s / 2, 1e-9 * said(card, kOld).run_s);
}

// Of as many launches: a library's layer is one call, a program's loop calls in each of its steps.
ModelCard recurrent_card(uint64_t calls, uint64_t steps) {
  auto card = made_card(1e7, 1e5, 5);
  card.operators["Recurrent"] = {calls, 1e4, 2e4, 2e4, 1e5, 1e7};
  card.launches += 4 * steps;
  return card;
}

double recurrent_step_s(uint64_t calls) {
  return 0.4e-3 + 0.3e-3 * static_cast<double>(calls);
}

TEST(GpuPredictor, ALoopOfRecurrentCallsTakesLongerThanALibrarysLayer) {
  std::vector<MeasuredTraining> rows;
  for (uint64_t i = 0; i < 120; ++i) {
    const uint64_t steps = 4 + 2 * (i / 3 % 20), calls = i % 3 == 0 ? 1 : steps;
    auto card = recurrent_card(calls, steps);
    MeasuredTraining row{.architecture = i % 3 == 0 ? "library" : "loop", .gpu = kOld};
    row.step_s = recurrent_step_s(calls);
    if (i % 3 == 2) {  // no recurrent layer, and as many calls that take little
      row.architecture = "plain";
      card = made_card(1e7, 1e5, 5 + steps);
      row.step_s = 0.4e-3 + 0.02e-3 * static_cast<double>(steps);
    }
    row.card = card;
    row.busy_s = 0.2 * row.step_s;
    row.iteration_s = row.step_s;
    row.utilisation_milli = 200;
    row.memory_bytes = made_bytes(card);
    row.calibration_s = 1e-3;
    rows.push_back(row);
  }
  JobModel model;
  model.gpu = fit_gpu_model(rows);
  const JobPredictor predictor(std::make_shared<const JobModel>(std::move(model)));
  for (const uint64_t steps : {9, 21, 60})  // the last beyond all that were seen
    for (const uint64_t calls : {uint64_t{1}, steps}) {
      const auto card = recurrent_card(calls, steps);
      const auto prediction = predictor.predict(card, {.engine = "gpu", .gpu = kOld});
      EXPECT_NEAR(std::log(prediction.run_s / (1000 * recurrent_step_s(calls))), 0, 0.35)
          << calls << " calls, " << steps << " steps";
    }
}

TEST(GpuPredictor, UseThatADriverTellsAsNoneTellsNothing) {
  auto rows = made_trainings({kOld});
  for (size_t i = 0; i < rows.size(); i += 5) {  // these wait for their data
    rows[i].card.job->load_s = rows[i].iteration_s = 100 * rows[i].busy_s;
    rows[i].utilisation_milli = 1;
    rows[i].busy_s = rows[i].iteration_s / 1000;
  }
  const auto error = [](const std::vector<MeasuredTraining>& known) {
    const auto model = fit_gpu_model(known);
    SeededRandom random(17);
    double squares = 0;
    for (int i = 0; i < 200; ++i) {
      const auto card = drawn_card(random);
      squares += std::pow(std::log(gpu_use(model, card, kOld).busy_s / made_busy_s(card, kOld)), 2);
    }
    return std::sqrt(squares / 200);
  };
  EXPECT_LT(error(rows), 1.5 * error(made_trainings({kOld})));
  // Where none tells anything they are what there is.
  for (auto& row : rows) row.utilisation_milli = 1;
  EXPECT_TRUE(std::isfinite(error(rows)));
}

TEST(GpuPredictor, SaysWhichGpuIsUnlike) {
  const auto card = made_card(1e10, 1e6, 10);
  EXPECT_EQ(said(card, kOld).why, "");
  auto fast = kNew;
  fast.name = "Tomorrow's";
  fast.cores *= 4;
  EXPECT_NE(said(card, fast).why.find("Tomorrow's"), std::string::npos) << said(card, fast).why;
  const auto silent = said(card, {.name = "Silent"});
  EXPECT_TRUE(silent.unlike);
  EXPECT_NE(silent.why.find("driver does not tell"), std::string::npos) << silent.why;
  // Another amount of memory is no other kind.
  auto smaller = kOld;
  smaller.memory_bytes = 12ull << 30;
  EXPECT_EQ(said(card, smaller).why, "");
  // As unlike as on a core.
  EXPECT_NE(said(made_card(1e16, 1e6, 10), kOld).why.find("FLOPs"), std::string::npos);
}

TEST(GpuPredictor, OneKindTellsNothingOfOthers) {
  const JobPredictor predictor(model_of({kOld}));
  const auto card = made_card(1e10, 1e6, 10);
  const auto on = [&](const GpuFeatures& gpu) {
    return predictor.predict(card, {.engine = "gpu", .gpu = gpu});
  };
  EXPECT_FALSE(on(kOld).unlike);
  EXPECT_TRUE(on(kBetween).unlike);
  EXPECT_NE(on(kBetween).why.find("Old"), std::string::npos) << on(kBetween).why;
}

TEST(GpuPredictor, AKindWhoseDriverTellsNothingIsNoneThatOthersAreComparedWith) {
  const GpuFeatures silent{.name = "silent"};
  const JobPredictor predictor(model_of({kNew, silent}));
  SeededRandom random(3);
  const auto card = drawn_card(random);
  const GpuFeatures tiny{.name = "tiny",
                         .compute_capability = kNew.compute_capability,
                         .cores = 1,
                         .sm_clock_mhz = 1,
                         .memory_clock_mhz = 1,
                         .bus_width_bits = 1};
  EXPECT_TRUE(predictor.predict(card, {.engine = "gpu", .gpu = tiny}).unlike);
  EXPECT_TRUE(predictor.predict(card, {.engine = "gpu", .gpu = kBetween}).unlike);
  EXPECT_FALSE(predictor.predict(card, {.engine = "gpu", .gpu = kNew}).unlike);
}

TEST(GpuPredictor, WithoutGpusNothingIsKnownOfThem) {
  const JobPredictor predictor(std::make_shared<const JobModel>());
  EXPECT_TRUE(predictor.gpus().empty());
  EXPECT_EQ(JobPredictor(model_of_two()).gpus().size(), 2u);
}

TEST(GpuPredictor, WhatIsSavedSaysTheSame) {
  const auto saved = gpu_model_json(*model_of_two()->gpu);
  const auto read = read_gpu_model(parse_json<nlohmann::json>(saved.dump()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(gpu_model_json(*read).dump(), saved.dump());
  const auto card = made_card(1e10, 1e6, 10);
  const auto before = gpu_use(*model_of_two()->gpu, card, kBetween);
  const auto after = gpu_use(*read, card, kBetween);
  EXPECT_EQ(before.busy_s, after.busy_s);
  EXPECT_EQ(before.iteration_s, after.iteration_s);
  EXPECT_EQ(before.memory_bytes, after.memory_bytes);
  auto broken = saved;
  broken["step"] = broken["memory"];
  EXPECT_FALSE(read_gpu_model(broken));
  broken = saved;
  broken["unseen_margins"]["run"] = -5;
  EXPECT_FALSE(read_gpu_model(broken));
  broken = saved;
  broken["gpus"][0]["memory_bytes"] = -1;
  EXPECT_FALSE(read_gpu_model(broken));
  broken = saved;
  broken["gpus"] = nlohmann::json::array();
  EXPECT_FALSE(read_gpu_model(broken));
  broken = saved;
  broken.erase("columns");
  EXPECT_NE(read_gpu_model(broken).error().message.find("train it again"), std::string::npos);
}

TEST(GpuStudy, LeavesOutEachArchitectureAndEachCard) {
  TrainingTable table;
  table.rows = made_trainings({kOld, kBetween, kNew});
  table.rows.resize(120);  // it takes a while
  std::vector<double> shares;
  const auto studies =
      study_trainings(table, nullptr, [&](double share) { shares.push_back(share); });
  ASSERT_EQ(studies.size(), 3u);
  ASSERT_GT(shares.size(), 3u) << "each card at least";
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  for (const auto& study : studies)
    for (const char* split : {"architecture", "card"})
      EXPECT_LT(error_of(study, split, "default"), 0.6 * error_of(study, split, "constant"))
          << study["target"] << split;
  for (const auto& score : studies[2]["scores"])
    if (score["split"] == "card") {
      const auto worst = score["worst_group"].get<std::string>();
      EXPECT_TRUE(worst == "Old" || worst == "Between" || worst == "New") << worst;
    }
}

// A table of both is two questions; of what is only in one file the other tells nothing.
TEST(GpuStudy, CoresAndGpusAreApart) {
  TrainingTable both, gpus;
  gpus.rows = made_trainings({kOld});
  both = gpus;
  for (auto& row : both.rows) row.gpu.reset();
  both.rows.insert(both.rows.end(), gpus.rows.begin(), gpus.rows.end());
  for (auto& row : both.rows) row.architecture += row.gpu ? " on a GPU" : " on a core";
  const auto trained_on_gpus = study_trainings(both, &gpus);
  ASSERT_EQ(trained_on_gpus.size(), 3u) << "of cores nothing is known";
  for (const auto& study : trained_on_gpus) {
    EXPECT_NE(study["target"].get<std::string>().find("GPU"), std::string::npos);
    EXPECT_EQ(study["rows"], gpus.rows.size());
  }
}

TEST(GpuKinds, AreNamedOrDescribed) {
  const auto named = parse_gpu("New", {kOld, kNew});
  ASSERT_TRUE(named);
  EXPECT_EQ(*named, kNew);
  const auto told = parse_gpu("cores=5120,sm_clock_mhz=1530,compute_capability=7.0", {});
  ASSERT_TRUE(told);
  EXPECT_EQ(told->cores, 5120u);
  EXPECT_EQ(told->sm_clock_mhz, 1530u);
  EXPECT_EQ(told->compute_capability, 7.0);
  EXPECT_EQ(told->bus_width_bits, 0u);
  const auto unknown = parse_gpu("H100", {kOld, kNew});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("Old, New"), std::string::npos) << unknown.error().message;
  EXPECT_NE(parse_gpu("bricks=3", {}).error().message.find("bricks"), std::string::npos);
  EXPECT_NE(parse_gpu("cores=many", {}).error().message.find("many"), std::string::npos);
}

TEST(WorkParts, AreAsManyAsTheColumnsOfWork) {
  EXPECT_EQ(work_parts().size(), work_row({}).size());
  // More of what a kind of GPU does fast costs less there.
  const auto card = made_card(1e10, 1e6, 10);
  auto twice = kOld;
  twice.sm_clock_mhz *= 2;
  const auto slow = gpu_row(card, kOld), fast = gpu_row(card, twice);
  for (size_t i = 0; i < work_parts().size(); ++i) switch (work_parts()[i].kind) {
      case WorkKind::kOperations:
        EXPECT_DOUBLE_EQ(fast[i], slow[i] / 2) << i;
        break;
      case WorkKind::kElements:
        EXPECT_NEAR(fast[i], slow[i] / std::sqrt(2), 1e-9 * slow[i]) << i;
        break;
      case WorkKind::kCalls:
        EXPECT_DOUBLE_EQ(fast[i], slow[i]) << i;
        break;
    }
}

// Rows begin with that; what a card needs beside it follows.
std::filesystem::path table_of(const std::vector<std::string>& rows) {
  const auto path = std::filesystem::path(testing::TempDir()) / "sharing-gpu-trainings.csv";
  std::ofstream file(path);
  file << "architecture,batch,iterations,utilisation_milli,memory_bytes,iteration_s,busy_s,"
          "calibration_s,MatMul.count,step_s,gpu_name,gpu_cores,gpu_sm_clock_mhz,"
          "gpu_compute_capability,Novelty.count,Other.count,parameters,parameter_bytes,"
          "parameter_tensors,activation_bytes,traffic_bytes,flops,launches\n";
  for (const auto& row : rows) file << row << ",10,40,2,80,200,1e6,5\n";
  return path;
}

TrainingTable trainings_of(const std::vector<std::string>& rows) {
  auto table = CsvTable::open(table_of(rows)).value();
  const auto trainings = read_trainings(table);
  EXPECT_TRUE(trainings) << trainings.error().message;
  return trainings.value_or(TrainingTable{});
}

TEST(TrainingTable, ReadsTheGpuOfARow) {
  const auto trainings =
      trainings_of({"mlp,32,100,250,1e6,0.1,0.02,0.004,3,0.05,V100,5120,1530,7,,",
                    "mlp,32,100,250,1e6,0.1,0.02,0.004,3,,,,,,,",
                    "mlp,32,100,250,1e6,0.1,0.02,0.004,3,,V100,5120,1530,7,,"});
  ASSERT_EQ(trainings.rows.size(), 2u);
  EXPECT_EQ(trainings.skipped, 1u) << "a row of a GPU without the time of a step";
  ASSERT_TRUE(trainings.rows[0].gpu);
  EXPECT_EQ(trainings.rows[0].gpu->name, "V100");
  EXPECT_EQ(trainings.rows[0].gpu->cores, 5120u);
  EXPECT_EQ(trainings.rows[0].step_s, 0.05);
  EXPECT_FALSE(trainings.rows[1].gpu) << "of a core";
}

// What is not there is no 0: it would be learned from, or tested.
TEST(TrainingTable, ARowThatLacksAFigureIsSkippedAndTold) {
  const std::string good = "mlp,32,100,250,1e6,0.1,0.02,0.004,3,,,,,,,";
  for (const auto& [row, lacks] :
       {std::pair("mlp,32,100,250,,0.1,0.02,0.004,3,,,,,,,", "memory_bytes"),
        std::pair("mlp,32,,250,1e6,0.1,0.02,0.004,3,,,,,,,", "iterations"),
        std::pair("mlp,32,100,250,1e6,0.1,0.02,0.004,3,0.05,,5120,1530,7,,", "gpu_name")}) {
    const auto trainings = trainings_of({good, row});
    EXPECT_EQ(trainings.rows.size(), 1u) << lacks;
    EXPECT_EQ(trainings.skipped, 1u) << lacks;
    EXPECT_NE(trainings.first_skipped.find(lacks), std::string::npos) << trainings.first_skipped;
  }
}

TEST(TrainingTable, AnArchitectureIsOneInAnyWriting) {
  const auto trainings = trainings_of({" LeNet ,32,100,250,1e6,0.1,0.02,0.004,3,,,,,,,"});
  ASSERT_EQ(trainings.rows.size(), 1u);
  EXPECT_EQ(trainings.rows[0].architecture, "lenet");
}

TEST(TrainingTable, OperatorsOfKindsThatNobodyKnowsCountAsUnknown) {
  const auto trainings = trainings_of({"mlp,32,100,250,1e6,0.1,0.02,0.004,3,,,,,,12,2"});
  ASSERT_EQ(trainings.rows.size(), 1u);
  const auto& operators = trainings.rows[0].card.operators;
  ASSERT_TRUE(operators.contains("Unknown"));
  EXPECT_EQ(operators.at("Unknown").count, 14u);
  EXPECT_EQ(operators.at("MatMul").count, 3u);
}

}  // namespace
}  // namespace tierpilot::sharing
