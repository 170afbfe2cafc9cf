#include "policies/quality/curve_family.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <unsupported/Eigen/NonLinearOptimization>
#include <vector>

#include "base/statistics.h"

namespace tierpilot::quality {
namespace {

using Parameters = std::array<double, 4>;

constexpr double kShift = 0.02;  // of the power law's origin, as a part of the history

// Parameters are free real numbers: rates and amplitudes are exponents, kept where exp is tame.
double positive(double theta) {
  return std::exp(std::clamp(theta, -12.0, 8.0));
}

double shape(CurveFamily family, const Parameters& p, double x) {
  switch (family) {
    case CurveFamily::kLevel:
      return p[0];
    case CurveFamily::kExponential:
      return p[0] + positive(p[1]) * std::exp(-positive(p[2]) * x);
    case CurveFamily::kSublinear:
      return p[0] + 1 / (positive(p[1]) + positive(p[2]) * x + positive(p[3]) * x * x);
    case CurveFamily::kPower:
      return p[0] + positive(p[1]) * std::pow((x + kShift) / (1 + kShift), -positive(p[2]));
  }
  return 0;
}

int parameter_count(CurveFamily family) {
  switch (family) {
    case CurveFamily::kLevel:
      return 1;
    case CurveFamily::kSublinear:
      return 4;
    default:
      return 3;
  }
}

struct Prior {
  Parameters mean, deviation;
};

// In scaled units, where the history ends at x = 1 and y = 0 and has fallen by about 1: what is
// still to come is small beside what has been, and rates are of the history's own length.
Prior prior_of(CurveFamily family) {
  switch (family) {
    case CurveFamily::kExponential:
      return {{-0.1, 0, 1.2}, {0.5, 1, 1}};
    case CurveFamily::kSublinear:
      return {{-0.1, 0, 1.2, 0}, {0.5, 1, 1.5, 3}};
    case CurveFamily::kPower:
      return {{-0.2, -1, -0.7}, {0.5, 1, 0.7}};
    default:
      return {{0, 0, 0, 0}, {1, 1, 1, 1}};
  }
}

struct ScaledPoint {
  double x, y, root_weight;
};

// What Eigen's solver asks of a problem: residuals, and the Jacobian by forward differences, which
// for so few parameters costs less than it would take to write it down.
struct Residuals {
  using Scalar = double;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;

  CurveFamily family;
  const std::vector<ScaledPoint>& points;
  Prior prior;
  double prior_weight;

  int inputs() const { return parameter_count(family); }
  int values() const { return static_cast<int>(points.size()) + inputs(); }
  int operator()(const InputType& theta, ValueType& residuals) const {
    Parameters p{};
    for (int i = 0; i < inputs(); ++i) p[i] = theta[i];
    Eigen::Index row = 0;
    for (const auto& point : points)
      residuals[row++] = point.root_weight * (shape(family, p, point.x) - point.y);
    for (int i = 0; i < inputs(); ++i)
      residuals[row++] = prior_weight * (p[i] - prior.mean[i]) / prior.deviation[i];
    return 0;
  }
};

Parameters solve(const Residuals& problem, Parameters start) {
  Eigen::VectorXd theta(problem.inputs());
  for (int i = 0; i < problem.inputs(); ++i) theta[i] = start[i];
  Eigen::NumericalDiff<Residuals> differences(problem);
  Eigen::LevenbergMarquardt<Eigen::NumericalDiff<Residuals>> solver(differences);
  solver.parameters.maxfev = 120;
  solver.parameters.ftol = solver.parameters.xtol = 1e-5;
  solver.minimize(theta);
  if (!theta.allFinite()) return start;
  for (int i = 0; i < problem.inputs(); ++i) start[i] = theta[i];
  return start;
}

// Huber's weights: a residual beyond twice the median size counts by its size and not its square.
void lower_outliers(std::vector<ScaledPoint>& points, const std::vector<double>& roots,
                    CurveFamily family, const Parameters& p) {
  std::vector<double> sizes(points.size());
  for (size_t i = 0; i < points.size(); ++i)
    sizes[i] = roots[i] * std::abs(shape(family, p, points[i].x) - points[i].y);
  const double limit = std::max(2 * upper_median(sizes), 1e-9);
  for (size_t i = 0; i < points.size(); ++i)
    points[i].root_weight = roots[i] * (sizes[i] > limit ? std::sqrt(limit / sizes[i]) : 1);
}

}  // namespace

std::string_view curve_family_name(CurveFamily family) {
  switch (family) {
    case CurveFamily::kLevel:
      return "level";
    case CurveFamily::kExponential:
      return "exponential";
    case CurveFamily::kSublinear:
      return "sublinear";
    case CurveFamily::kPower:
      return "power";
  }
  return "";
}

double FittedCurve::at(double iteration) const {
  const double x = std::max((iteration - first_) / span_, 0.0);
  return base_ + scale_ * shape(family_, parameters_, x);
}

FittedCurve fit_curve(CurveFamily family, std::span<const WeightedPoint> points,
                      FitOptions options) {
  FittedCurve curve;
  double low = points.front().loss, high = low, total = 0;
  for (const auto& point : points) {
    low = std::min(low, point.loss);
    high = std::max(high, point.loss);
    total += point.weight;
  }
  curve.first_ = points.front().iteration;
  curve.span_ = std::max(points.back().iteration - curve.first_, 1e-9);
  curve.base_ = points.back().loss;
  curve.scale_ = high > low ? high - low : 1;
  const bool flat = high - low <= 1e-12 * (std::abs(high) + std::abs(low));
  curve.family_ = flat || points.size() < static_cast<size_t>(parameter_count(family))
                      ? CurveFamily::kLevel
                      : family;
  std::vector<ScaledPoint> scaled;
  std::vector<double> roots;
  for (const auto& point : points) {
    roots.push_back(std::sqrt(point.weight / total));
    scaled.push_back({(point.iteration - curve.first_) / curve.span_,
                      (point.loss - curve.base_) / curve.scale_, roots.back()});
  }
  const Prior prior = prior_of(curve.family_);
  Parameters p = solve({curve.family_, scaled, prior, options.prior_weight}, prior.mean);
  for (int pass = 0; pass < options.huber_passes; ++pass) {
    lower_outliers(scaled, roots, curve.family_, p);
    p = solve({curve.family_, scaled, prior, options.prior_weight}, p);
  }
  curve.parameters_ = p;
  return curve;
}

}  // namespace tierpilot::quality
