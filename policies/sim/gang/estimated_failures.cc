#include "policies/sim/gang/estimated_failures.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random.h"

namespace tierpilot::gang {
namespace {

constexpr double kTwoPi = 6.283185307179586;

// Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS 26, 2000); scale
// 1.
double gamma(double shape, SeededRandom& random) {
  if (shape < 1) return gamma(shape + 1, random) * std::pow(1 - random.unit(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = std::sqrt(-2 * std::log1p(-random.unit())) * std::cos(kTwoPi * random.unit());
    const double v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log1p(-random.unit()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

double until_h(const GangScene& scene) {
  double longest_h = 0;
  for (const auto& job : scene.jobs) longest_h = std::max(longest_h, job.work_h);
  return 5 * (scene.jobs.back().arrival_h + longest_h);
}

}  // namespace

UnitFailures estimated_failures(const GangScene& scene, TrueRates rates, uint64_t seed) {
  SeededRandom random(derived_seed(seed, "gang estimated failures"));
  UnitFailures failures = scene.failures;
  const double all = std::accumulate(failures.past.begin(), failures.past.end(), 0.0);
  const double fleet_per_h = std::max(all, 1.0) / (failures.past_h * scene.units);
  const double end_h = until_h(scene);
  failures.times_h.resize(scene.units);
  failures.per_h_before.resize(scene.units);
  failures.per_h_after.resize(scene.units);
  for (uint32_t unit = 0; unit < scene.units; ++unit) {
    const double shape = scene.prior_shape + failures.past[unit];
    const double seen_h = scene.prior_shape / fleet_per_h + failures.past_h;
    const double per_h = (rates == TrueRates::kDrawn ? gamma(shape, random) : shape) / seen_h;
    auto& times = failures.times_h[unit];
    times.clear();
    if (per_h > 0)
      for (double at_h = 0; (at_h += random.exponential(1 / per_h)) < end_h;) times.push_back(at_h);
    failures.per_h_before[unit] = failures.per_h_after[unit] = per_h;
  }
  return failures;
}

}  // namespace tierpilot::gang
