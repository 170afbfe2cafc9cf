// What the default predictor of training jobs has learned.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sharing/interference/pair_prior.h"
#include "policies/sharing/predict/jobs/gpu_model.h"
#include "policies/sharing/predict/jobs/seen_cards.h"
#include "policies/sharing/predict/jobs/training_table.h"
#include "policies/sharing/predict/jobs/upper_figures.h"
#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

// Of cores, and of GPUs where such were measured.
struct JobModel {
  std::string engine = "cpu";
  double calibration_s = 0;           // of the core it was trained on, the median
  double float32_ops_per_s = 0;       // of that core, as nodes measure theirs; 0: not known
  std::unique_ptr<Regressor> busy;    // ln(milliseconds of a core per iteration), of busy_row()
  std::unique_ptr<Regressor> memory;  // ln(1 + MiB), of resident_row()
  double busy_margin = 0;             // of busy, of architectures never seen; use follows from it
  double memory_margin = 0;
  SeenCards cards;
  std::set<std::string> architectures;  // that it was trained on; none: it does not tell
  std::optional<PairPrior> pairs;       // of two trainings on one core, where pairs were measured
  std::optional<GpuModel> gpu;
};

Row busy_row(const ModelCard& card);
Row resident_row(const ModelCard& card);

// The predictors alone, and what they are to say.
std::unique_ptr<Regressor> make_busy_regressor();
std::unique_ptr<Regressor> make_memory_regressor();
double busy_target(const MeasuredTraining& row, double calibration_s);
double memory_target(const MeasuredTraining& row);

// Of rows of cores, at least one. Margins are what targets exceed predictions by where an
// architecture was left out.
JobModel fit_job_model(const std::vector<MeasuredTraining>& rows);

// Seconds of an iteration that takes, its data being there, `busy_s` of them, and how much of a
// core that keeps busy.
double iteration_s(double busy_s, const ModelCard& card);
double milli_of(double busy_s, const ModelCard& card);

nlohmann::json job_model_json(const JobModel& model);
Result<JobModel> read_job_model(std::string_view json);

}  // namespace tierpilot::sharing
