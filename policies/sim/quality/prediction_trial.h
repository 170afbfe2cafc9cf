// How well predictors foretell recorded curves.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "policies/sim/quality/curve_files.h"

namespace tierpilot::sim {

// How far ahead is predicted: reports after the newest known one, or the run's last report.
inline constexpr std::array<size_t, 3> kReportsAhead{10, 100, 0};  // 0: the end
inline constexpr std::array kHorizonNames{"10", "100", "end"};

struct Prediction {
  size_t horizon = 0;  // of kReportsAhead
  double loss = 0, low = 0, high = 0;
  double actual = 0;
  double error = 0;  // |loss - actual| as a part of the reference, see reference_loss
  bool covered = false;
};

struct CurveTrial {
  size_t curve = 0;
  size_t seen = 0;         // reports known when it was predicted
  double noise_floor = 0;  // the part of the reference by which a predictor that knows the curve
                           // without its noise would miss in the mean
  std::vector<std::vector<Prediction>> predictions;  // by predictor
  std::string skipped;                               // why there is none
  std::string left_out;                              // why some are missing
};

// What errors are a part of: the size of the actual loss, or a hundredth of the range of the losses
// seen where that is more (a loss near zero would make every error endless).
double reference_loss(double actual, double lowest_seen, double highest_seen);

// One curve from each of `origins` points of it (parts of its reports), by each predictor.
// `predictors` are names for make_predictor.
Result<std::vector<CurveTrial>> try_predictors(const std::vector<LossCurve>& curves,
                                               const std::vector<std::string>& predictors,
                                               const std::vector<double>& origins);

}  // namespace tierpilot::sim
