#include "policies/gang/rates/effects.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::gang {
namespace {

// The gain in log likelihood from which on levels count as different: chance exceeds it once in
// some hundred factors that do not matter (a chi-square of one degree, on the edge of its range).
constexpr double kEvidence = 2.7;
constexpr double kMinShape = 0.02;
constexpr double kMaxShape = 2000;
constexpr int kShapes = 60;

// Negative-binomial log likelihood of the counts with effects Gamma(a, a), less that of Poisson.
double evidence(const std::vector<double>& failures, const std::vector<double>& expected,
                double a) {
  double sum = 0;
  for (size_t i = 0; i < failures.size(); ++i) {
    const double k = failures[i];
    const double m = expected[i];
    if (m <= 0) continue;
    sum += m - a * std::log1p(m / a) - k * std::log1p(m / a);
    if (k > 0) sum += std::lgamma(a + k) - std::lgamma(a) - k * std::log(a);
  }
  return sum;
}

}  // namespace

double dispersion_of(const std::vector<double>& failures, const std::vector<double>& expected) {
  double squares = 0;
  double total = 0;
  for (size_t i = 0; i < failures.size(); ++i) {
    squares += (failures[i] - expected[i]) * (failures[i] - expected[i]);
    total += expected[i];
  }
  return total > 0 ? std::max(squares / total, 1.0) : 1.0;
}

Effects estimate_effects(const std::vector<double>& failures, const std::vector<double>& expected,
                         double dispersion) {
  std::vector<double> k = failures;
  std::vector<double> m = expected;
  for (auto* counts : {&k, &m})
    for (double& count : *counts) count /= dispersion;
  Effects effects{.prior_shape = kMaxShape, .mean = {}, .shape = {}};
  double best = kEvidence;
  for (int i = 0; i <= kShapes; ++i) {
    const double a = kMinShape * std::pow(kMaxShape / kMinShape, static_cast<double>(i) / kShapes);
    const double gain = evidence(k, m, a);
    if (gain <= best) continue;
    best = gain;
    effects.matter = true;
    effects.prior_shape = a;
  }
  double weighted = 0;
  double weights = 0;
  for (size_t i = 0; i < k.size(); ++i) {
    effects.shape.push_back(effects.prior_shape + k[i]);
    effects.mean.push_back(effects.shape[i] / (effects.prior_shape + m[i]));
    weighted += effects.mean[i] * m[i];
    weights += m[i];
  }
  if (weighted > 0)
    for (double& mean : effects.mean) mean *= weights / weighted;
  return effects;
}

}  // namespace tierpilot::gang
