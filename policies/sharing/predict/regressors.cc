#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/statistics.h"
#include "policies/sharing/predict/cholesky.h"
#include "policies/sharing/predict/regressor.h"
#include "policies/sharing/predict/saved_kinds.h"
#include "policies/sharing/predict/standardised.h"

namespace tierpilot::sharing {
namespace {

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

class Constant final : public Regressor {
 public:
  void fit(const std::vector<Row>&, const std::vector<double>& targets) override {
    mean_ = mean_of(targets);
  }
  double predict(const Row&) const override { return mean_; }

 private:
  double mean_ = 0;
};

class Median final : public Regressor {
 public:
  void fit(const std::vector<Row>&, const std::vector<double>& targets) override {
    median_ = upper_median(targets);
  }
  double predict(const Row&) const override { return median_; }

 private:
  double median_ = 0;
};

class Told final : public Regressor {
 public:
  explicit Told(size_t column) : column_(column) {}
  void fit(const std::vector<Row>&, const std::vector<double>&) override {}
  double predict(const Row& row) const override { return row[column_]; }

 private:
  const size_t column_;
};

class Ridge final : public Regressor {
 public:
  explicit Ridge(double penalty) : penalty_(penalty) {}
  Ridge(Standardised scale, double mean, Row weights)
      : scale_(std::move(scale)), mean_(mean), weights_(std::move(weights)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    scale_.fit(rows);
    mean_ = mean_of(targets);
    const size_t columns = rows.front().size();
    std::vector<Row> products(columns, Row(columns, 0));
    weights_.assign(columns, 0);
    for (size_t r = 0; r < rows.size(); ++r) {
      const Row row = scale_(rows[r]);
      for (size_t i = 0; i < columns; ++i) {
        weights_[i] += row[i] * (targets[r] - mean_);
        for (size_t j = 0; j <= i; ++j) products[i][j] += row[i] * row[j];
      }
    }
    for (size_t i = 0; i < columns; ++i)
      products[i][i] += penalty_ * static_cast<double>(rows.size()) + 1e-9;
    solve_by_cholesky(products, weights_);
  }

  double predict(const Row& row) const override {
    const Row scaled = scale_(row);
    return std::inner_product(scaled.begin(), scaled.end(), weights_.begin(), mean_);
  }

  nlohmann::json saved() const override {
    return {{"kind", "ridge"},
            {"means", scale_.means()},
            {"scales", scale_.scales()},
            {"mean", mean_},
            {"weights", weights_}};
  }

 private:
  const double penalty_ = 0;
  Standardised scale_;
  double mean_ = 0;
  Row weights_;
};

class Nearest final : public Regressor {
 public:
  explicit Nearest(size_t k) : k_(k) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    scale_.fit(rows);
    rows_.clear();
    for (const auto& row : rows) rows_.push_back(scale_(row));
    targets_ = targets;
  }

  double predict(const Row& row) const override {
    const Row scaled = scale_(row);
    std::vector<std::pair<double, double>> near;  // distance, target
    for (size_t r = 0; r < rows_.size(); ++r) {
      double distance = 0;
      for (size_t i = 0; i < scaled.size(); ++i)
        distance += (rows_[r][i] - scaled[i]) * (rows_[r][i] - scaled[i]);
      near.emplace_back(distance, targets_[r]);
    }
    const size_t count = std::min(k_, near.size());
    std::partial_sort(near.begin(), near.begin() + static_cast<ptrdiff_t>(count), near.end());
    double sum = 0;
    for (size_t i = 0; i < count; ++i) sum += near[i].second;
    return sum / static_cast<double>(count);
  }

 private:
  const size_t k_;
  Standardised scale_;
  std::vector<Row> rows_;
  std::vector<double> targets_;
};

}  // namespace

std::unique_ptr<Regressor> make_constant() {
  return std::make_unique<Constant>();
}
std::unique_ptr<Regressor> make_told(size_t column) {
  return std::make_unique<Told>(column);
}

std::unique_ptr<Regressor> make_median() {
  return std::make_unique<Median>();
}
std::unique_ptr<Regressor> make_ridge(double penalty) {
  return std::make_unique<Ridge>(penalty);
}
std::unique_ptr<Regressor> make_nearest(size_t k) {
  return std::make_unique<Nearest>(k);
}

std::unique_ptr<Regressor> read_ridge(const nlohmann::json& saved, size_t columns) {
  auto means = saved.at("means").get<Row>(), scales = saved.at("scales").get<Row>();
  auto weights = saved.at("weights").get<Row>();
  if (means.size() != columns || scales.size() != columns || weights.size() != columns)
    return nullptr;
  return std::make_unique<Ridge>(Standardised(std::move(means), std::move(scales)),
                                 saved.at("mean").get<double>(), std::move(weights));
}

}  // namespace tierpilot::sharing
