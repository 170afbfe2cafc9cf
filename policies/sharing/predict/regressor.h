// Regression from a row of numbers to a number.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

namespace tierpilot::sharing {

using Row = std::vector<double>;  // finite numbers, as many in each row

class Regressor {
 public:
  virtual ~Regressor() = default;
  // At least one row; as many targets.
  virtual void fit(const std::vector<Row>& rows, const std::vector<double>& targets) = 0;
  virtual double predict(const Row& row) const = 0;
};

// The mean or the median of the targets, whatever the row.
std::unique_ptr<Regressor> make_constant();
std::unique_ptr<Regressor> make_median();
// Least squares on standardised columns with an L2 penalty per row (Hoerl and Kennard, Ridge
// Regression, Technometrics 12(1), 1970).
std::unique_ptr<Regressor> make_ridge(double penalty);
// The mean of the k nearest rows by standardised columns.
std::unique_ptr<Regressor> make_nearest(size_t k);

struct TreeSettings {
  uint32_t trees = 300;
  uint32_t depth = 4;
  double rate = 0.05;
  uint32_t least_rows = 8;  // of a leaf
};
// Gradient boosting of regression trees on squared error (Friedman, Greedy Function Approximation,
// Annals of Statistics 29(5), 2001), columns cut into at most 64 ranges.
std::unique_ptr<Regressor> make_boosted_trees(const TreeSettings& settings);
// `first`, and `second` on what the first leaves.
std::unique_ptr<Regressor> make_stacked(std::unique_ptr<Regressor> first,
                                        std::unique_ptr<Regressor> second);

// The mean of what all of them say.
std::unique_ptr<Regressor> make_average(std::vector<std::unique_ptr<Regressor>> members);
// Sees these columns of a row only.
std::unique_ptr<Regressor> make_on_columns(std::vector<size_t> columns,
                                           std::unique_ptr<Regressor> regressor);

}  // namespace tierpilot::sharing
