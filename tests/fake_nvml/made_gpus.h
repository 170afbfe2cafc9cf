// Kinds of GPUs that there are not, and a law of how long trainings take on them: what predictors
// learn from, where no GPU is.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"
#include "policies/sharing/predict/jobs/training_table.h"

namespace tierpilot::sharing {

// Old, new, and one between them.
inline const GpuFeatures kOld{"Old", 6.0, 16ull << 30, 3584, 1328, 715, 4096};
inline const GpuFeatures kNew{"New", 8.0, 40ull << 30, 6912, 1410, 1215, 5120};
inline const GpuFeatures kBetween{"Between", 7.0, 32ull << 30, 5120, 1530, 877, 4096};

inline ModelCard made_card(double flops, double elements, uint64_t layers, double load_s = 0) {
  ModelCard card{.batch = 32,
                 .input_elements = 1e4,
                 .parameters = 1e6,
                 .parameter_bytes = 4e6,
                 .parameter_tensors = 2 * layers,
                 .activation_bytes = 4 * elements,
                 .traffic_bytes = 12 * elements,
                 .flops = flops,
                 .depth = layers,
                 .launches = 2 * layers};
  card.operators["MatMul"] = {layers, 1e4, 2e4, 2e4, 1e6, flops};
  card.operators["ReLU"] = {layers, 1e4, elements, elements, 0, elements};
  card.job = JobCard{
      .iterations = 1000, .optimizer = "SGD", .load_s = load_s, .loads_ahead = true, .threads = 1};
  return card;
}

inline double made_busy_s(const ModelCard& card, const GpuFeatures& gpu) {
  return 6 * card.flops / gpu.float32_ops_per_s() +
         5 * card.activation_bytes / gpu.memory_bytes_per_s() +
         5e-6 * static_cast<double>(card.launches);
}

inline double made_step_s(const ModelCard& card, const GpuFeatures& gpu) {
  return std::max(made_busy_s(card, gpu), 40e-6 * static_cast<double>(card.launches));
}

inline double made_iteration_s(const ModelCard& card, const GpuFeatures& gpu) {
  return std::max(made_step_s(card, gpu), *card.job->load_s);
}

inline double made_bytes(const ModelCard& card) {
  return 400 * double{1 << 20} + 2 * card.parameter_bytes + 3 * card.activation_bytes;
}

inline ModelCard drawn_card(SeededRandom& random) {
  return made_card(random.log_uniform(1e8, 1e12), random.log_uniform(1e5, 3e7),
                   5 + random.below(40), random.unit() < 0.5 ? 0 : random.log_uniform(1e-4, 0.1));
}

// As if they had been measured, a tenth off at most.
inline std::vector<MeasuredTraining> made_trainings(const std::vector<GpuFeatures>& gpus) {
  std::vector<MeasuredTraining> rows;
  SeededRandom random(5);
  for (size_t i = 0; i < 240; ++i) {
    const auto& gpu = gpus[i % gpus.size()];
    const auto card = drawn_card(random);
    const double noise = std::exp(0.1 * (2 * random.unit() - 1));
    MeasuredTraining row{.architecture = fmt::format("a{}", i % 7), .card = card, .gpu = gpu};
    row.busy_s = made_busy_s(card, gpu) * noise;
    row.step_s = std::max(made_step_s(card, gpu) * noise, row.busy_s);
    row.iteration_s = std::max(row.step_s, *card.job->load_s);
    row.utilisation_milli = 1000 * row.busy_s / row.iteration_s;
    row.memory_bytes = made_bytes(card);
    row.calibration_s = 1e-3;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace tierpilot::sharing
