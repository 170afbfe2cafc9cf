// Measured training configurations: the table of `tierctl predictor collect`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/table/csv_table.h"
#include "policies/sharing/card/model_card.h"
#include "policies/sharing/gpu_features.h"

namespace tierpilot::sharing {

struct MeasuredTraining {
  std::string architecture;
  ModelCard card;  // with its job
  double utilisation_milli = 0;
  double memory_bytes = 0;
  double iteration_s = 0;
  double busy_s = 0;                 // of the core or GPU, per iteration
  double calibration_s = 0;          // how long a fixed piece of work took a core meanwhile
  std::optional<GpuFeatures> gpu{};  // that it ran on; nothing: on a core
  double step_s = 0;                 // on a GPU: of an iteration whose data is there
  bool traced = false;               // busy_s is of kernels, not of a driver's whole percents
  double host_ops_per_s = 0;         // float32 operations of a core of that machine; 0: not known
};

struct TrainingTable {
  std::vector<MeasuredTraining> rows;
  uint64_t skipped = 0;
  std::string first_skipped;
};

bool is_training_table(const CsvTable& table);
// Rows that lack a figure are skipped. kInvalid, with file and line: a row with what is no such
// figure, with other cells than the header has, or a header with a name twice.
Result<TrainingTable> read_trainings(CsvTable& table);

}  // namespace tierpilot::sharing
