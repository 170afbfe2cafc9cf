#include "policies/quality/blended_predictor.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "policies/quality/change_point.h"
#include "policies/quality/noise_scale.h"
#include "policies/quality/outliers.h"

namespace tierpilot::quality {
namespace {

// Chosen on runs of criteo1tb, ogbg, two GPT-2 pre-trainings and 25 M parameter language models;
// docs/quality.md has what they give on others.
constexpr double kLeastPrior = 0.005, kMostPrior = 0.02;  // weights of the prior
constexpr double kPriorOfCount = 0.5;                     // its weight for a single report
constexpr double kTrialExponent = 2.5;  // a family counts by its trials' error to the minus this
constexpr double kHorizonWidth = 1.2;   // trials count by how near their horizon is, as a logarithm
constexpr double kSteepest = 1.5;       // of the slope so far, that a curve may go on with
constexpr double kChangeVariance = 0.3;   // what else makes up an interval: of the change squared
constexpr double kUsualVariance = 0.4;    // and of what would change at the slope so far
constexpr double kDeviations80 = 1.2816;  // hold 80 % of a normal distribution

constexpr std::array kSeenShares{0.5, 0.65, 0.8, 0.9, 0.95};  // of the history, in trials
constexpr size_t kLeastSeen = 4;                              // reports, for a trial
constexpr size_t kNoiseBlocks = 300;
constexpr size_t kSlopeBlocks = 200;

double noise_of(Blocks blocks) {
  std::vector<double> losses;
  for (const auto& block : blocks.last(std::min(blocks.size(), kNoiseBlocks)))
    losses.push_back(block.loss);
  return noise_deviation(losses);
}

double span_of(Blocks blocks) {
  return std::max(blocks.back().iteration - blocks.front().iteration, 1e-9);
}

// Few reports do not tell the shape of their curve.
double prior_weight(Blocks blocks) {
  return std::clamp(kPriorOfCount / blocks.size(), kLeastPrior, kMostPrior);
}

// What an iteration changed in the time before that is as long as the time ahead, half of the
// history at most. Medians, so that single reports do not count.
double recent_slope(Blocks blocks, double ahead) {
  const double since = blocks.back().iteration - std::min(2 * ahead, span_of(blocks) / 2);
  const auto start = std::partition_point(
      blocks.begin(), blocks.end(), [&](const auto& block) { return block.iteration <= since; });
  const size_t count = std::min(
      blocks.size(), std::clamp<size_t>(blocks.end() - start, kLeastSeen - 1, kSlopeBlocks));
  const Blocks recent = blocks.last(count), older = recent.first(count / 2),
               newer = recent.last(count - count / 2);
  if (older.empty()) return 0;
  std::vector<double> before, after;
  for (const auto& block : older) before.push_back(block.loss);
  for (const auto& block : newer) after.push_back(block.loss);
  const double distance = newer[newer.size() / 2].iteration - older[older.size() / 2].iteration;
  return std::abs(upper_median(before) - upper_median(after)) / std::max(distance, 1e-9);
}

}  // namespace

void BlendedPredictor::observe(LossPoint point) {
  history_.add(point);
  fresh_ = false;
}

void BlendedPredictor::refit() const {
  if (fresh_) return;
  fresh_ = true;
  const Blocks all = history_.blocks();
  const Blocks since_change = all.subspan(last_change_point(all));
  noise_ = noise_of(since_change);
  current_ = without_outliers(since_change, noise_);
  trials_.clear();
  const FitOptions options{.prior_weight = prior_weight(current_), .huber_passes = 1};
  const auto points = joined_by_age(current_, noise_);
  for (size_t f = 0; f < curves_.size(); ++f) {
    const auto curve = fit_curve(kCurveFamilies[f], points, options);
    smoothing_[f] = best_smoothing(curve, current_);
    curves_[f] = track(curve, current_, smoothing_[f]);
  }
  for (const double share : kSeenShares) {
    const double until = current_.front().iteration + share * span_of(current_);
    const auto end = std::find_if(current_.begin(), current_.end(),
                                  [&](const auto& block) { return block.iteration > until; });
    const size_t seen = end - current_.begin();
    if (seen < kLeastSeen || seen == current_.size()) continue;
    try_from(Blocks(current_).first(seen), Blocks(current_).subspan(seen));
  }
}

// At some horizons, each against the mean of a few losses around.
void BlendedPredictor::try_from(Blocks seen, Blocks later) const {
  const FitOptions options{.prior_weight = prior_weight(seen), .huber_passes = 0};
  const auto points = joined_by_age(seen, noise_);
  Curves curves;
  for (size_t f = 0; f < curves.size(); ++f)
    curves[f] = track(fit_curve(kCurveFamilies[f], points, options), seen, smoothing_[f]);
  for (size_t at = later.size(); at > 0; at = at * 2 / 3) {
    const size_t around = std::max<size_t>(1, at / 4);
    const auto window = later.subspan(at - around, around);
    double iteration = 0, actual = 0;
    for (const auto& block : window) {
      iteration += block.iteration / around;
      actual += block.loss / around;
    }
    Trial trial{.log_horizon = std::log((iteration - seen.back().iteration) / span_of(seen)),
                .level = curves[0].at(iteration),
                .actual = actual,
                .predicted = {}};
    for (size_t f = 0; f < curves.size(); ++f) trial.predicted[f] = curves[f].at(iteration);
    trials_.push_back(trial);
  }
}

BlendedPredictor::Weights BlendedPredictor::weights_for(double log_horizon) const {
  double longest = -1e9;
  for (const auto& trial : trials_) longest = std::max(longest, trial.log_horizon);
  const double wanted = trials_.empty() ? log_horizon : std::min(log_horizon, longest);
  Weights weights{};
  std::array<double, kCurveFamilies.size()> squares{};
  double total = 1e-9;
  const auto nearness = [&](const Trial& trial) {
    const double distance = (trial.log_horizon - wanted) / kHorizonWidth;
    return std::exp(-distance * distance / 2);
  };
  for (const auto& trial : trials_) {
    const double near = nearness(trial);
    total += near;
    for (size_t f = 0; f < squares.size(); ++f) {
      const double error = trial.predicted[f] - trial.actual;
      squares[f] += near * error * error;
    }
  }
  double sum = 0;
  const double least =
      0.05 * noise_ * noise_ + 1e-12 * current_.back().loss * current_.back().loss + 1e-300;
  for (size_t f = 0; f < squares.size(); ++f) {
    weights.share[f] = std::pow(squares[f] / total + least, -kTrialExponent / 2);
    sum += weights.share[f];
  }
  for (auto& share : weights.share) share /= sum;
  double square = 0;
  for (const auto& trial : trials_) {
    double error = -trial.actual;
    for (size_t f = 0; f < squares.size(); ++f) error += weights.share[f] * trial.predicted[f];
    square += nearness(trial) * error * error;
  }
  // Further ahead than was ever tried, errors are taken to grow as the horizon does.
  if (!trials_.empty())
    weights.trial_error = std::sqrt(square / total) * std::exp(std::min(log_horizon - wanted, 3.0));
  return weights;
}

std::optional<LossForecast> BlendedPredictor::at(double iteration) const {
  if (history_.empty()) return {};
  refit();
  const double ahead = std::max(iteration - current_.back().iteration, 1e-9);
  const auto weights = weights_for(std::log(ahead / span_of(current_)));
  // Returns diminish: what comes is hardly more than what has just been.
  const double usual = ahead * recent_slope(current_, ahead);
  const double level = curves_[0].at(iteration);
  std::array<double, kCurveFamilies.size()> losses;
  LossForecast forecast;
  for (size_t f = 0; f < losses.size(); ++f) {
    const double most = kSteepest * usual;
    losses[f] = level + std::clamp(curves_[f].at(iteration) - level, -most, most);
    forecast.loss += weights.share[f] * losses[f];
  }
  double spread = 0;
  for (size_t f = 0; f < losses.size(); ++f)
    spread += weights.share[f] * (losses[f] - forecast.loss) * (losses[f] - forecast.loss);
  const double change = forecast.loss - level;
  const double variance = noise_ * noise_ + weights.trial_error * weights.trial_error + spread +
                          kChangeVariance * change * change + kUsualVariance * usual * usual;
  const double half = kDeviations80 * std::sqrt(variance);
  forecast.low = forecast.loss - half;
  forecast.high = forecast.loss + half;
  return forecast;
}

std::string_view BlendedPredictor::family() const {
  if (history_.empty()) return "";
  refit();
  const auto weights = weights_for(0);
  return curve_family_name(
      kCurveFamilies[std::max_element(weights.share.begin(), weights.share.end()) -
                     weights.share.begin()]);
}

}  // namespace tierpilot::quality
