#include "policies/quality/rivals.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "policies/quality/curve_family.h"
#include "policies/quality/loss_history.h"
#include "policies/quality/usable_loss.h"

namespace tierpilot::quality {
namespace {

constexpr double kZ80 = 1.2816;  // 80 % of a normal distribution lie within so many deviations

// An interval by the size of its errors from one report to the next, as a random walk would have
// it.
class OneStepErrors {
 public:
  void add(double error) { square_ += 0.05 * (error * error - square_); }
  LossForecast around(double loss, double reports_ahead) const {
    const double half = kZ80 * std::sqrt(square_ * std::max(reports_ahead, 1.0));
    return {loss, loss - half, loss + half};
  }

 private:
  double square_ = 0;
};

// What the three without a fit share: a level and a slope for each iteration.
class SimpleRival : public Predictor {
 public:
  SimpleRival(double gain, bool goes_on) : gain_(gain), goes_on_(goes_on) {}

  void observe(LossPoint point) override {
    if (!is_usable_loss(point.loss) || !std::isfinite(point.iteration)) return;
    if (!seen_ || point.iteration <= iteration_) {
      level_ = point.loss;
      slope_ = 0;
      total_ = 1;
    } else {
      step_ = point.iteration - iteration_;
      errors_.add(point.loss - level_ - slope_ * step_);
      if (goes_on_) slope_ = (point.loss - last_) / step_;
      total_ =
          1 + (1 - gain_) * total_;  // of the weights: the first report has no more than its own
      level_ += (point.loss - level_) / total_;
    }
    seen_ = true;
    iteration_ = point.iteration;
    last_ = point.loss;
  }
  std::optional<LossForecast> at(double iteration) const override {
    if (!seen_) return {};
    const double ahead = iteration - iteration_;
    return errors_.around(level_ + slope_ * ahead, ahead / step_);
  }

 private:
  double gain_;
  bool goes_on_;
  bool seen_ = false;
  double iteration_ = 0, last_ = 0, level_ = 0, slope_ = 0, step_ = 1, total_ = 1;
  OneStepErrors errors_;
};

class PublishedFit : public Predictor {
 public:
  void observe(LossPoint point) override {
    if (!history_.empty() && fitted_ && point.iteration > history_.newest().iteration)
      for (size_t f = 0; f < curves_.size(); ++f) {
        const double error = curves_[f].at(point.iteration) - point.loss;
        if (std::isfinite(error)) recent_[f] += 0.1 * (std::abs(error) - recent_[f]);
      }
    history_.add(point);
    fitted_ = false;
    if (++reports_ % kRefitEvery == 0) refit();
  }
  std::optional<LossForecast> at(double iteration) const override {
    if (history_.empty()) return {};
    refit();
    const auto& curve = curves_[better()];
    double square = 0, total = 0;
    for (const auto& point : points_) {
      const double error = curve.at(point.iteration) - point.loss;
      square += point.weight * error * error;
      total += point.weight;
    }
    const double loss = curve.at(iteration);
    const double half = kZ80 * std::sqrt(square / total);
    return LossForecast{loss, loss - half, loss + half};
  }
  std::string_view family() const override { return curve_family_name(curves_[better()].family()); }

 private:
  // Each report would do, but changes the fit by little and costs the same.
  static constexpr uint64_t kRefitEvery = 10;
  static constexpr double kDecay = 0.98;
  static constexpr double kLeastWeight = 1e-4;

  size_t better() const { return recent_[1] < recent_[0]; }
  void refit() const {
    if (fitted_ || history_.empty()) return;
    fitted_ = true;
    points_.clear();
    double weight = 1;
    const auto& blocks = history_.blocks();
    for (auto block = blocks.rbegin(); block != blocks.rend() && weight > kLeastWeight; ++block) {
      points_.push_back({block->iteration, block->loss, weight * block->count});
      weight *= std::pow(kDecay, block->count);
    }
    std::reverse(points_.begin(), points_.end());
    curves_ = {fit_curve(CurveFamily::kExponential, points_),
               fit_curve(CurveFamily::kSublinear, points_)};
  }

  LossHistory history_;
  uint64_t reports_ = 0;
  mutable bool fitted_ = false;
  mutable std::vector<WeightedPoint> points_;
  mutable std::array<FittedCurve, 2> curves_;
  std::array<double, 2> recent_{};  // size of the error of each, one report ahead
};

}  // namespace

std::unique_ptr<Predictor> make_last_value() {
  return std::make_unique<SimpleRival>(1, false);
}
std::unique_ptr<Predictor> make_last_change() {
  return std::make_unique<SimpleRival>(1, true);
}
std::unique_ptr<Predictor> make_exponential_mean() {
  return std::make_unique<SimpleRival>(0.2, false);
}
std::unique_ptr<Predictor> make_published_fit() {
  return std::make_unique<PublishedFit>();
}

}  // namespace tierpilot::quality
