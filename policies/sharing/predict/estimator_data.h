// What estimators said of the memory of networks (s3_memory_estimators.csv and files like it).
#pragma once

#include "base/result.h"
#include "base/table/csv_table.h"
#include "policies/sharing/predict/study.h"

namespace tierpilot::sharing {

struct EstimatorData {
  std::vector<std::string> estimators;  // columns that end in _mib, but for the actual one
  std::vector<Row> rows;                // ln of each estimate, ln of the batch
  std::vector<double> actual_mib;
  std::vector<std::string> models;
  uint64_t skipped = 0;
  std::string first_skipped;
};

bool is_estimator_table(const CsvTable& table);
Result<EstimatorData> read_estimators(CsvTable& table);

// Split by model. The default corrects what the estimators say by what was measured of others; the
// estimators stand beside it as they are.
Study estimator_study(const EstimatorData& data, const EstimatorData* train);

}  // namespace tierpilot::sharing
