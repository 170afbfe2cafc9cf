// Regression from a row of numbers to a number.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tierpilot::sharing {

using Row = std::vector<double>;  // finite numbers, as many in each row

class Regressor {
 public:
  virtual ~Regressor() = default;
  // At least one row; as many targets.
  virtual void fit(const std::vector<Row>& rows, const std::vector<double>& targets) = 0;
  virtual double predict(const Row& row) const = 0;
  // What it has learned, for read_regressor(); null where its kind cannot be kept.
  virtual nlohmann::json saved() const;
};

// What saved() gave, for rows of so many columns. kInvalid: it is nothing of the kind.
Result<std::unique_ptr<Regressor>> read_regressor(const nlohmann::json& saved, size_t columns);

// The mean or the median of the targets, whatever the row.
std::unique_ptr<Regressor> make_constant();
std::unique_ptr<Regressor> make_median();
// What is in that column; nothing is fitted.
std::unique_ptr<Regressor> make_told(size_t column);
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
// The logarithm of a sum of non-negative columns with non-negative weights, by the squared error of
// logarithms (Adam: Kingma and Ba, ICLR 2015). Weights begin at `start` of a column's unit and are
// drawn back there, so that a column which is hardly ever used stays of a sane size.
struct CostSettings {
  double start = 0.135;
  double penalty = 1e-3;  // of (ln weight - ln start)^2
  uint32_t steps = 1500;
};
std::unique_ptr<Regressor> make_cost_sum(const CostSettings& settings);
// What rows nearby are off by, 0 far from all: the mean of a Gaussian process on standardised
// columns (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006).
struct KrigingSettings {
  double reach = 0.1;  // root mean square over columns, in deviations
  double noise = 0.3;  // variance of measuring, against what rows of one place share
};
std::unique_ptr<Regressor> make_kriging(const KrigingSettings& settings);
// `first`, and `second` on what the first leaves.
std::unique_ptr<Regressor> make_stacked(std::unique_ptr<Regressor> first,
                                        std::unique_ptr<Regressor> second);

// The mean of what all of them say.
std::unique_ptr<Regressor> make_average(std::vector<std::unique_ptr<Regressor>> members);
// Sees these columns of a row only; `of` so many, where it is fitted already.
std::unique_ptr<Regressor> make_on_columns(std::vector<size_t> columns,
                                           std::unique_ptr<Regressor> regressor, size_t of = 0);

struct PerceptronSettings {
  std::vector<size_t> hidden = {64, 32};  // ReLU units
  uint32_t epochs = 100;
  double rate = 3e-3;
  uint64_t seed = 1;
};
// A multi-layer perceptron on standardised columns, squared error, Adam in batches of 32.
std::unique_ptr<Regressor> make_perceptron(const PerceptronSettings& settings);

}  // namespace tierpilot::sharing
