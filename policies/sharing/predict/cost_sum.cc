#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "policies/sharing/predict/adam.h"
#include "policies/sharing/predict/saved_kinds.h"

namespace tierpilot::sharing {
namespace {

constexpr double kRate = 0.05;
constexpr double kLeast = 1e-12;

// Column by column.
Row transposed(const std::vector<Row>& rows) {
  Row all(rows.size() * rows.front().size());
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < rows[r].size(); ++i) all[i * rows.size() + r] = rows[r][i];
  return all;
}

void add_scaled(Row& to, const double* values, double scale) {
  double* const out = to.data();
  for (size_t r = 0; r < to.size(); ++r) out[r] += values[r] * scale;
}

class CostSum final : public Regressor {
 public:
  explicit CostSum(const CostSettings& settings) : settings_(settings) {}
  explicit CostSum(Row weights) : weights_(std::move(weights)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    const size_t columns = rows.front().size();
    const double count = static_cast<double>(rows.size()), start = std::log(settings_.start);
    const Row by_column = transposed(rows);
    Row logs(columns, start), gradients(columns), sums(rows.size());
    weights_.assign(columns, settings_.start);
    Adam adam(columns, kRate);
    for (uint32_t step = 0; step < settings_.steps; ++step) {
      for (size_t i = 0; i < columns; ++i) gradients[i] = 2 * settings_.penalty * (logs[i] - start);
      // As total() of each row, but side by side: they do not wait for each other.
      sums.assign(rows.size(), kLeast);
      for (size_t i = 0; i < columns; ++i)
        add_scaled(sums, by_column.data() + i * rows.size(), weights_[i]);
      for (size_t r = 0; r < rows.size(); ++r) {
        const double slope = 2 * (std::log(sums[r]) - targets[r]) / sums[r] / count;
        const double* const row = rows[r].data();
        for (size_t i = 0; i < columns; ++i) gradients[i] += slope * row[i] * weights_[i];
      }
      adam.step(logs, gradients);
      for (size_t i = 0; i < columns; ++i) weights_[i] = std::exp(logs[i]);
    }
  }

  double predict(const Row& row) const override { return std::log(total(row)); }

  nlohmann::json saved() const override { return {{"kind", "cost sum"}, {"weights", weights_}}; }

 private:
  double total(const Row& row) const {
    return std::inner_product(row.begin(), row.end(), weights_.begin(), kLeast);
  }

  const CostSettings settings_ = {};
  Row weights_;
};

}  // namespace

std::unique_ptr<Regressor> make_cost_sum(const CostSettings& settings) {
  return std::make_unique<CostSum>(settings);
}

std::unique_ptr<Regressor> read_cost_sum(const nlohmann::json& saved, size_t columns) {
  auto weights = saved.at("weights").get<Row>();
  for (const double weight : weights)
    if (!(weight >= 0)) return nullptr;
  return weights.size() == columns ? std::make_unique<CostSum>(std::move(weights)) : nullptr;
}

}  // namespace tierpilot::sharing
