// Families of loss curves and their weighted non-linear least-squares fit, by Levenberg-Marquardt
// (the port of MINPACK that comes with Eigen).
#pragma once

#include <array>
#include <span>
#include <string_view>

namespace tierpilot::quality {

enum class CurveFamily {
  kLevel,        // c
  kExponential,  // a e^(-r x) + c: linear convergence; mu^(k - b) + c of US and SLAQ papers
  kSublinear,    // 1 / (a x^2 + b x + c) + d: first-order methods (SLAQ, SoCC 2017)
  kPower,        // a (x + s)^(-p) + c: neural scaling laws
};
inline constexpr std::array kCurveFamilies{CurveFamily::kLevel, CurveFamily::kExponential,
                                           CurveFamily::kSublinear, CurveFamily::kPower};
std::string_view curve_family_name(CurveFamily family);

struct WeightedPoint {
  double iteration = 0;
  double loss = 0;
  double weight = 1;  // of the squared residual
};

// How much a fit leans on what curves usually are; 0 is plain least squares.
struct FitOptions {
  double prior_weight = 0;
  int huber_passes = 0;  // fits again with the weights of outliers lowered
};

// A fitted curve; a value. Iterations are scaled to (0, 1] and losses to about the same inside.
class FittedCurve {
 public:
  FittedCurve() = default;
  double at(double iteration) const;
  CurveFamily family() const { return family_; }

 private:
  friend FittedCurve fit_curve(CurveFamily, std::span<const WeightedPoint>, FitOptions);
  CurveFamily family_ = CurveFamily::kLevel;
  double first_ = 0, span_ = 1;  // x = (iteration - first) / span
  double base_ = 0, scale_ = 1;  // y = (loss - base) / scale
  std::array<double, 4> parameters_{};
};

// `points` by rising iteration, all finite, at least one. With fewer points than the family has
// parameters the answer is the level.
FittedCurve fit_curve(CurveFamily family, std::span<const WeightedPoint> points,
                      FitOptions options = {});

}  // namespace tierpilot::quality
