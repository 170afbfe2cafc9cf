#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "policies/sharing/predict/cholesky.h"
#include "policies/sharing/predict/regressor.h"
#include "policies/sharing/predict/saved_kinds.h"
#include "policies/sharing/predict/standardised.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMostPlaces = 1500;   // time goes with their third power
constexpr double kPerDeviation = 1e4;  // what is kept of places: finer only makes files larger

// How much of what one row is off by the other is thought to be: 1 for the same, hardly anything
// beyond a few times the reach (Matérn's kernel, smoothness 3/2).
double nearness(const Row& a, const Row& b, double reach) {
  double squares = 0;
  for (size_t i = 0; i < a.size(); ++i) squares += (a[i] - b[i]) * (a[i] - b[i]);
  const double far = std::sqrt(3 * squares / static_cast<double>(a.size())) / reach;
  return (1 + far) * std::exp(-far);
}

class Kriging final : public Regressor {
 public:
  explicit Kriging(const KrigingSettings& settings) : settings_(settings) {}
  Kriging(double reach, Standardised scale, std::vector<Row> rows, Row weights)
      : settings_{.reach = reach},
        scale_(std::move(scale)),
        rows_(std::move(rows)),
        weights_(std::move(weights)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    scale_.fit(rows);
    rows_.clear();
    weights_.clear();
    const size_t places = std::min(rows.size(), kMostPlaces);
    for (size_t place = 0; place < places; ++place) {
      const size_t at = place * rows.size() / places;  // of more, evenly
      rows_.push_back(scale_(rows[at]));
      weights_.push_back(targets[at]);
      for (auto& value : rows_.back()) value = std::round(value * kPerDeviation) / kPerDeviation;
    }
    std::vector<Row> covariances(rows_.size());
    for (size_t i = 0; i < rows_.size(); ++i) {
      for (size_t j = 0; j <= i; ++j)
        covariances[i].push_back(nearness(rows_[i], rows_[j], settings_.reach));
      covariances[i][i] += settings_.noise;
    }
    solve_by_cholesky(covariances, weights_);
  }

  double predict(const Row& row) const override {
    const Row scaled = scale_(row);
    double sum = 0;
    for (size_t i = 0; i < rows_.size(); ++i)
      sum += weights_[i] * nearness(rows_[i], scaled, settings_.reach);
    return sum;
  }

  nlohmann::json saved() const override {
    return {{"kind", "kriging"},       {"reach", settings_.reach},
            {"means", scale_.means()}, {"scales", scale_.scales()},
            {"rows", rows_},           {"weights", weights_}};
  }

 private:
  const KrigingSettings settings_;
  Standardised scale_;
  std::vector<Row> rows_;
  Row weights_;
};

}  // namespace

std::unique_ptr<Regressor> make_kriging(const KrigingSettings& settings) {
  return std::make_unique<Kriging>(settings);
}

std::unique_ptr<Regressor> read_kriging(const nlohmann::json& saved, size_t columns) {
  auto means = saved.at("means").get<Row>(), scales = saved.at("scales").get<Row>();
  auto rows = saved.at("rows").get<std::vector<Row>>();
  auto weights = saved.at("weights").get<Row>();
  const double reach = saved.at("reach").get<double>();
  const bool fit =
      means.size() == columns && scales.size() == columns && weights.size() == rows.size() &&
      std::all_of(rows.begin(), rows.end(), [&](const Row& row) { return row.size() == columns; });
  if (!fit || !(reach > 0)) return nullptr;
  return std::make_unique<Kriging>(reach, Standardised(std::move(means), std::move(scales)),
                                   std::move(rows), std::move(weights));
}

}  // namespace tierpilot::sharing
