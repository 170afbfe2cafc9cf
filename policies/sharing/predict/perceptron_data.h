// Memory and utilisation of multi-layer perceptrons (s3_mlp_memory_utilisation.csv and files like
// it).
#pragma once

#include "base/result.h"
#include "base/table/csv_table.h"
#include "policies/sharing/predict/study.h"

namespace tierpilot::sharing {

struct PerceptronData {
  std::vector<Row> rows;
  std::vector<double> memory_mib, utilisation_percent;  // NaN: not measured
  std::vector<std::string> families, activations;
  uint64_t skipped = 0;
  std::string first_skipped;
};

// Columns batch, parameters, widths (input first, in one cell), memory_mib or gpu_util; of use are
// activations, depth, batchnorm_layers, dropout_layers, arch and activation.
bool is_perceptron_table(const CsvTable& table);
Result<PerceptronData> read_perceptrons(CsvTable& table);

// Of memory and of utilisation, as far as they were measured: split by family and by activation
// function, or trained on all of `train`.
std::vector<Study> perceptron_studies(const PerceptronData& data, const PerceptronData* train);

}  // namespace tierpilot::sharing
