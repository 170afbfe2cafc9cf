#include "policies/learning/confidence.h"

#include <algorithm>
#include <cmath>

namespace tierpilot {
namespace {

constexpr double kLargestBet = 0.5;

}  // namespace

ConfidenceSequence::ConfidenceSequence(double low, double high, double miss)
    : low_(low), range_(high - low), log_miss_(std::log(2 / miss)) {}

void ConfidenceSequence::add(double value) {
  if (!std::isfinite(value)) return;
  const double x = std::clamp((value - low_) / range_, 0.0, 1.0);
  const auto before = static_cast<double>(count_);
  const double t = before + 1;
  const double mean = (0.5 + sum_) / t;
  const double variance = (0.25 + squares_) / t;
  const double bet =
      std::min(kLargestBet, std::sqrt(2 * log_miss_ / (variance * t * std::log(1 + t))));
  penalties_ += (x - mean) * (x - mean) * (-std::log1p(-bet) - bet);
  weighted_ += bet * x;
  bets_ += bet;
  ++count_;
  sum_ += x;
  const double mean_now = (0.5 + sum_) / (t + 1);
  squares_ += (x - mean_now) * (x - mean_now);
}

MeanInterval ConfidenceSequence::interval() const {
  MeanInterval interval{count_, low_, low_, low_ + range_};
  if (count_ == 0) return interval;
  const double centre = weighted_ / bets_;
  const double half = (log_miss_ + penalties_) / bets_;
  interval.mean = low_ + range_ * sum_ / static_cast<double>(count_);
  interval.low = low_ + range_ * std::max(0.0, centre - half);
  interval.high = low_ + range_ * std::min(1.0, centre + half);
  return interval;
}

}  // namespace tierpilot
