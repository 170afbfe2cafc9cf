// Columns with mean 0 and deviation 1; columns that do not vary become 0.
#pragma once

#include <algorithm>
#include <cmath>

#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

class Standardised {
 public:
  Standardised() = default;
  Standardised(Row means, Row scales) : means_(std::move(means)), scales_(std::move(scales)) {}

  void fit(const std::vector<Row>& rows) {
    const size_t columns = rows.front().size();
    means_.assign(columns, 0);
    scales_.assign(columns, 0);
    const double count = static_cast<double>(rows.size());
    for (const auto& row : rows)
      for (size_t i = 0; i < columns; ++i) means_[i] += row[i] / count;
    for (const auto& row : rows)
      for (size_t i = 0; i < columns; ++i) scales_[i] += std::pow(row[i] - means_[i], 2) / count;
    for (auto& scale : scales_) scale = scale > 1e-18 ? 1 / std::sqrt(scale) : 0;
  }
  // Far outside of what was seen a column counts no more than `kFar` deviations.
  Row operator()(const Row& row) const {
    constexpr double kFar = 6;
    Row scaled(row.size());
    for (size_t i = 0; i < row.size(); ++i)
      scaled[i] = std::clamp((row[i] - means_[i]) * scales_[i], -kFar, kFar);
    return scaled;
  }

  const Row& means() const { return means_; }
  const Row& scales() const { return scales_; }

 private:
  Row means_, scales_;
};

}  // namespace tierpilot::sharing
