#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "policies/sharing/predict/adam.h"
#include "policies/sharing/predict/saved_kinds.h"

namespace tierpilot::sharing {
namespace {

constexpr double kRate = 0.05;
constexpr double kLeast = 1e-12;

class CostSum final : public Regressor {
 public:
  explicit CostSum(const CostSettings& settings) : settings_(settings) {}
  explicit CostSum(Row weights) : weights_(std::move(weights)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    const size_t columns = rows.front().size();
    const double count = static_cast<double>(rows.size()), start = std::log(settings_.start);
    Row logs(columns, start), gradients(columns);
    weights_.assign(columns, settings_.start);
    Adam adam(columns, kRate);
    for (uint32_t step = 0; step < settings_.steps; ++step) {
      for (size_t i = 0; i < columns; ++i) gradients[i] = 2 * settings_.penalty * (logs[i] - start);
      for (size_t r = 0; r < rows.size(); ++r) {
        const double sum = total(rows[r]);
        const double slope = 2 * (std::log(sum) - targets[r]) / sum / count;
        for (size_t i = 0; i < columns; ++i) gradients[i] += slope * rows[r][i] * weights_[i];
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
