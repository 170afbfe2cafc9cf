// Recorded loss curves from CSV files of any make that names its columns.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/quality/loss_point.h"

namespace tierpilot::sim {

struct LossCurve {
  std::string run;                         // unique within its file
  std::string family;                      // workload; curves of one family are alike
  std::vector<quality::LossPoint> points;  // in the file's order; a loss may be NaN or infinite
  std::vector<double> seconds;             // since the start, of each point; empty: not told
};

struct CurveFile {
  std::vector<LossCurve> curves;  // in the order of their first rows
  uint64_t rows = 0;
  uint64_t skipped = 0;       // rows without a number for the iteration, or without a loss
  std::string first_skipped;  // "FILE:LINE: what"
};

// Columns, by the first name that the header has:
//   iteration, step, iter, epoch or k     required
//   loss, train_loss or training_loss     required, or the column called `measure` if one is named
//   seconds, or ms                        since the start
//   run, job, curve and name; params_m and schedule   together they tell runs apart
//   family, workload or model; else params_m          the family; else the file's name
// Beside "X_curves.csv" a table "X_runs.csv" with the columns run and workload tells families, too.
// kInvalid for a file without the required columns or without any curve.
Result<CurveFile> read_curves(const std::filesystem::path& path, const std::string& measure = {});

// A file, or every *.csv of a folder by name; those of a folder that are no curves are left out,
// and it is an error when none is.
Result<CurveFile> read_curve_files(const std::filesystem::path& path,
                                   const std::string& measure = {});

}  // namespace tierpilot::sim
