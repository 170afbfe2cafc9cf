#include "policies/sim/quality/prediction_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "base/statistics.h"
#include "policies/quality/noise_scale.h"
#include "policies/quality/predictor.h"
#include "policies/quality/usable_loss.h"

namespace tierpilot::sim {
namespace {

constexpr size_t kLeastReports = 4;

// Of the reports that were still to come: the mean size of normal noise is sqrt(2 / pi) deviations.
double noise_floor(const LossCurve& curve, size_t seen) {
  std::vector<double> losses;
  for (size_t i = seen; i < curve.points.size(); ++i)
    if (quality::is_usable_loss(curve.points[i].loss)) losses.push_back(curve.points[i].loss);
  const double level = std::abs(upper_median(losses));
  if (level == 0) return 0;
  return quality::noise_deviation(losses) * std::sqrt(2 / std::numbers::pi) / level;
}

struct Range {
  double low = INFINITY, high = -INFINITY;
};

Range range_of(const LossCurve& curve, size_t seen) {
  Range range;
  for (size_t i = 0; i < seen; ++i) {
    const double loss = curve.points[i].loss;
    if (!quality::is_usable_loss(loss)) continue;
    range.low = std::min(range.low, loss);
    range.high = std::max(range.high, loss);
  }
  return range;
}

std::string why_no_number(const LossCurve& curve, size_t seen) {
  double largest = 0;
  for (const auto& point : curve.points)
    if (std::isfinite(point.loss)) largest = std::max(largest, std::abs(point.loss));
  if (largest >= quality::kLargestLoss)
    return fmt::format(
        "its losses are as large as {:.3g}, and sums of the squares of such (from {:g} on) are no "
        "numbers: give them divided by a power of ten",
        largest, quality::kLargestLoss);
  const Range known = range_of(curve, seen);
  return known.low <= known.high
             ? "what is predicted of its losses is no number that could be summed"
             : "none of the losses before that point is a finite number";
}

bool is_number(const Prediction& prediction) {
  constexpr double kLargestError = 1e300;  // of which as many as there are can be added
  return std::isfinite(prediction.loss) && std::isfinite(prediction.low) &&
         std::isfinite(prediction.high) && prediction.error <= kLargestError;
}

// Nothing: it is no number.
std::optional<Prediction> prediction_of(const LossCurve& curve, size_t seen, size_t target,
                                        const quality::Predictor& predictor) {
  const auto forecast = predictor.at(curve.points[target].iteration);
  const double actual = curve.points[target].loss;
  if (!forecast || !quality::is_usable_loss(actual)) return std::nullopt;
  const Range range = range_of(curve, seen);
  const Prediction prediction{
      .loss = forecast->loss,
      .low = forecast->low,
      .high = forecast->high,
      .actual = actual,
      .error = std::abs(forecast->loss - actual) / reference_loss(actual, range.low, range.high),
      .covered = forecast->low <= actual && actual <= forecast->high};
  return is_number(prediction) ? std::optional(prediction) : std::nullopt;
}

std::vector<Prediction> predictions_of(const LossCurve& curve, CurveTrial& trial,
                                       const quality::Predictor& predictor) {
  std::vector<Prediction> predictions;
  for (size_t horizon = 0; horizon < kReportsAhead.size(); ++horizon) {
    const size_t ahead = kReportsAhead[horizon];
    const size_t target = ahead ? trial.seen - 1 + ahead : curve.points.size() - 1;
    if (target >= curve.points.size() || !std::isfinite(curve.points[target].loss)) continue;
    if (const auto prediction = prediction_of(curve, trial.seen, target, predictor)) {
      predictions.push_back(*prediction);
      predictions.back().horizon = horizon;
    } else {
      trial.left_out = why_no_number(curve, trial.seen);
    }
  }
  return predictions;
}

}  // namespace

double reference_loss(double actual, double lowest_seen, double highest_seen) {
  return std::max({std::abs(actual), 0.01 * (highest_seen - lowest_seen), 1e-300});
}

Result<std::vector<CurveTrial>> try_predictors(const std::vector<LossCurve>& curves,
                                               const std::vector<std::string>& predictors,
                                               const std::vector<double>& origins) {
  std::vector<CurveTrial> trials;
  for (size_t number = 0; number < curves.size(); ++number) {
    const auto& curve = curves[number];
    for (const double origin : origins) {
      const auto seen = static_cast<size_t>(origin * static_cast<double>(curve.points.size()));
      trials.push_back({.curve = number,
                        .seen = seen,
                        .noise_floor = noise_floor(curve, seen),
                        .predictions = {},
                        .skipped = {},
                        .left_out = {}});
      if (seen < kLeastReports || seen == curve.points.size())
        trials.back().skipped =
            fmt::format("it has {} reports before that point and {} after it; {} and 1 are needed",
                        seen, curve.points.size() - seen, kLeastReports);
    }
    for (const auto& name : predictors) {
      auto predictor = quality::make_predictor(name);
      if (!predictor) return tl::unexpected(predictor.error());
      size_t known = 0;
      for (size_t i = trials.size() - origins.size(); i < trials.size(); ++i) {
        auto& trial = trials[i];
        if (!trial.skipped.empty()) continue;
        for (; known < trial.seen; ++known) (*predictor)->observe(curve.points[known]);
        trial.predictions.push_back(predictions_of(curve, trial, **predictor));
      }
    }
  }
  return trials;
}

}  // namespace tierpilot::sim
