// Rows that are drawn, and how far a regressor is off on them.
#pragma once

#include <cmath>
#include <vector>

#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

struct Drawn {
  std::vector<Row> rows;
  std::vector<double> targets;
};

inline double root_mean_square(const Regressor& regressor, const Drawn& drawn) {
  double sum = 0;
  for (size_t i = 0; i < drawn.rows.size(); ++i)
    sum += std::pow(regressor.predict(drawn.rows[i]) - drawn.targets[i], 2);
  return std::sqrt(sum / static_cast<double>(drawn.rows.size()));
}

}  // namespace tierpilot::sharing
