// What the default predictor has learned of trainings on GPUs: of the same figures of a model card
// as on a core, and of what is known of a kind of GPU, so that what was measured on some kinds
// tells of another one.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "policies/sharing/gpu_features.h"
#include "policies/sharing/predict/jobs/seen_cards.h"
#include "policies/sharing/predict/jobs/training_table.h"
#include "policies/sharing/predict/jobs/upper_figures.h"
#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

struct GpuModel {
  std::vector<GpuFeatures> kinds;     // that were measured
  std::unique_ptr<Regressor> busy;    // ln(milliseconds of the GPU per iteration), of gpu_row()
  std::unique_ptr<Regressor> step;    // the same until it is done, once its data is there
  std::unique_ptr<Regressor> memory;  // ln(1 + MiB), of gpu_memory_row()
  Margins margins;                    // of architectures never seen
  Margins unseen_margins;             // of kinds of GPUs never seen, too
  SeenCards cards;
  std::set<std::string> architectures;  // that it was trained on; none: it does not tell
  // Of the hosts, the median: how long the fixed piece of work took a core, and the float32
  // operations per second, as nodes measure theirs, that go with it; 0: not known.
  double calibration_s = 0;
  double host_ops_per_s = 0;

  bool has_seen(const GpuFeatures& gpu) const;
  // What makes it unlike all that were measured; empty: nothing.
  std::string unlike_why(const GpuFeatures& gpu) const;
};

// Milliseconds that the GPU would take at the most that its kind can do, by what an iteration is
// made of; beside them what is known of the card. Calls are made by the host, which may be slower.
Row gpu_row(const ModelCard& card, const GpuFeatures& gpu, double host_speed = 1);
Row gpu_memory_row(const ModelCard& card, const GpuFeatures& gpu);

struct GpuUse {
  double busy_s = 0, step_s = 0, iteration_s = 0, memory_bytes = 0;
  double milli() const;
};
struct GpuSpeed {
  double gpu = 1;   // of this one against what its kind is thought to do
  double host = 1;  // of a core beside it against those of the machines that were measured
};
GpuUse gpu_use(const GpuModel& model, const ModelCard& card, const GpuFeatures& gpu,
               const GpuSpeed& speed = {});
// Of the host that a training was measured with, by its calibration; 1: not known.
double host_speed(const GpuModel& model, const MeasuredTraining& row);

// Of rows of GPUs, at least one.
GpuModel fit_gpu_model(const std::vector<MeasuredTraining>& rows);

nlohmann::json gpu_model_json(const GpuModel& model);
// Throws nlohmann's exceptions where a field is missing or of another type. kInvalid: a regressor
// is none.
Result<GpuModel> read_gpu_model(const nlohmann::json& saved);

}  // namespace tierpilot::sharing
