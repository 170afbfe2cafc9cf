#include "policies/sim/quality/family_curves.h"

#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "base/random.h"

namespace tierpilot::sim {
namespace {

double normal(SeededRandom& random) {  // Box and Muller 1958
  return std::sqrt(-2 * std::log1p(-random.unit())) *
         std::cos(2 * std::numbers::pi * random.unit());
}

struct Shape {
  const char* family;
  double noise;  // of the range
  // The loss without noise at a part of the run, from about 1 downwards.
  std::function<double(double part)> loss;
};

std::vector<Shape> draw_shapes(SeededRandom& random) {
  const double fast = random.log_uniform(8, 60), slow = random.log_uniform(3, 20);
  const double exponent = random.log_uniform(0.3, 1.2), knee = random.log_uniform(0.003, 0.05);
  const double drop = 0.3 + 0.4 * random.unit(), at = 0.3 + 0.4 * random.unit();
  const auto decay = [](double rate) { return [rate](double x) { return std::exp(-rate * x); }; };
  const auto power = [](double k, double p) {
    return [k, p](double x) { return std::pow(1 + x / k, -p); };
  };
  return {{"svm", 0.02, power(knee, 1)},
          // Half of the networks have their learning rate lowered once.
          {"neural-network", 0.02,
           [shape = power(knee, exponent), drop, at, steps = random.chance(0.5)](double x) {
             return shape(x) * (steps && x > at ? 1 - drop * (1 - std::exp(-(x - at) * 40)) : 1);
           }},
          {"logistic-regression", 0.002,
           [a = decay(fast), b = decay(slow)](double x) { return (a(x) + b(x)) / 2; }},
          {"linear-regression", 0.0, decay(fast)},
          {"boosted-trees", 0.003,
           [a = decay(slow), b = power(0.1, 1)](double x) { return (a(x) + b(x)) / 2; }},
          // Lloyd's steps: nothing happens for a while, then a centre finds another place.
          {"k-means", 0.0,
           [a = decay(fast)](double x) { return a(std::floor(x * 40) / 40) * 0.3 + 0.7 * a(x); }},
          {"lda", 0.005, power(knee * 4, 2)}};
}

}  // namespace

std::vector<LossCurve> family_curves(uint64_t seed, uint32_t count) {
  SeededRandom random(derived_seed(seed, "loss curves"));
  std::vector<LossCurve> curves;
  for (uint32_t number = 0; number < count; ++number)
    for (const auto& shape : draw_shapes(random)) {
      const auto reports = static_cast<size_t>(random.log_uniform(60, 1500));
      const double scale = random.log_uniform(0.1, 1000), floor = random.unit();
      LossCurve curve{.run = fmt::format("{}-{}", shape.family, number),
                      .family = shape.family,
                      .points = {},
                      .seconds = {}};
      for (size_t i = 0; i < reports; ++i) {
        const double part = static_cast<double>(i) / static_cast<double>(reports);
        const double noise = shape.noise == 0 ? 0 : shape.noise * normal(random);
        curve.points.push_back({static_cast<double>(i + 1),
                                scale * (floor + shape.loss(part) + noise * shape.loss(part))});
      }
      curves.push_back(std::move(curve));
    }
  return curves;
}

}  // namespace tierpilot::sim
