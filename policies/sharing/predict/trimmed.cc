#include "policies/sharing/predict/trimmed.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/statistics.h"

namespace tierpilot::sharing {
namespace {

constexpr double kFar = 5;  // robust deviations

class Trimmed final : public Regressor {
 public:
  explicit Trimmed(std::unique_ptr<Regressor> regressor) : regressor_(std::move(regressor)) {}

  void fit(const std::vector<Row>& rows, const std::vector<double>& targets) override {
    regressor_->fit(rows, targets);
    std::vector<double> off;
    for (size_t i = 0; i < rows.size(); ++i)
      off.push_back(std::abs(targets[i] - regressor_->predict(rows[i])));
    const double most = kFar * kDeviationOfMad * upper_median(off);
    std::vector<Row> near;
    std::vector<double> near_targets;
    for (size_t i = 0; i < rows.size(); ++i)
      if (off[i] <= most) {
        near.push_back(rows[i]);
        near_targets.push_back(targets[i]);
      }
    regressor_->fit(near, near_targets);
  }
  double predict(const Row& row) const override { return regressor_->predict(row); }
  nlohmann::json saved() const override { return regressor_->saved(); }

 private:
  const std::unique_ptr<Regressor> regressor_;
};

}  // namespace

std::unique_ptr<Regressor> make_trimmed(std::unique_ptr<Regressor> regressor) {
  return std::make_unique<Trimmed>(std::move(regressor));
}

}  // namespace tierpilot::sharing
