#include "policies/gang/rates/forecast.h"

#include <algorithm>
#include <boost/math/distributions/gamma.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <numeric>

namespace tierpilot::gang {
namespace {

constexpr double kMinMean = 1e-12;

std::vector<size_t> by_score(const std::vector<double>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace

double CountForecast::log_probability(uint64_t count) const {
  const double k = static_cast<double>(count);
  const double m = std::max(mean, kMinMean);
  double sum = -(shape + k) * std::log1p(m / shape) + k * std::log(m / shape) - std::lgamma(k + 1);
  if (count > 0) sum += std::lgamma(shape + k) - std::lgamma(shape);
  return sum;
}

double CountForecast::at_most(int64_t count) const {
  if (count < 0) return 0;
  const double m = std::max(mean, kMinMean);
  return boost::math::ibeta(shape, static_cast<double>(count) + 1, shape / (shape + m));
}

uint64_t CountForecast::quantile(double share) const {
  int64_t high = 1;
  while (at_most(high) < share && high < int64_t{1} << 40) high *= 2;
  int64_t low = 0;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (at_most(middle) >= share)
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<uint64_t>(low);
}

double covered_share(const CountForecast& forecast, uint64_t count, double share) {
  const double below = forecast.at_most(static_cast<int64_t>(count) - 1);
  const double up_to = forecast.at_most(static_cast<int64_t>(count));
  const double low = (1 - share) / 2;
  const double high = (1 + share) / 2;
  if (up_to - below <= 0) return below >= low && below <= high ? 1 : 0;
  return std::max(std::min(up_to, high) - std::max(below, low), 0.0) / (up_to - below);
}

double area_under_curve(const std::vector<double>& scores, const std::vector<uint64_t>& counts) {
  const auto order = by_score(scores);
  double failed = 0;
  double won = 0;
  double sound = 0;
  for (size_t i = 0; i < order.size();) {
    double failed_here = 0;
    double sound_here = 0;
    size_t next = i;
    for (; next < order.size() && scores[order[next]] == scores[order[i]]; ++next)
      (counts[order[next]] > 0 ? failed_here : sound_here) += 1;
    won += sound_here * (failed + failed_here / 2);
    failed += failed_here;
    sound += sound_here;
    i = next;
  }
  return failed > 0 && sound > 0 ? won / (failed * sound) : 0.5;
}

double lift(const std::vector<double>& scores, const std::vector<uint64_t>& counts, double share) {
  const auto order = by_score(scores);
  double left = share * static_cast<double>(order.size());
  double caught = 0;
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  for (size_t i = 0; i < order.size() && left > 0;) {
    double here = 0;
    size_t next = i;
    for (; next < order.size() && scores[order[next]] == scores[order[i]]; ++next)
      here += static_cast<double>(counts[order[next]]);
    const auto units = static_cast<double>(next - i);
    caught += here * std::min(left / units, 1.0);
    left -= units;
    i = next;
  }
  return all > 0 ? caught / (all * share) : 1;
}

Interval gamma_interval(double mean, double shape, double share) {
  if (!(mean > 0) || !(shape > 0)) return {};
  const boost::math::gamma_distribution<> gamma(shape, mean / shape);
  return {boost::math::quantile(gamma, (1 - share) / 2),
          boost::math::quantile(gamma, (1 + share) / 2)};
}

}  // namespace tierpilot::gang
