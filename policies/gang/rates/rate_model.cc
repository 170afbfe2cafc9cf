#include "policies/gang/rates/rate_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace tierpilot::gang {
namespace {

constexpr int kSweeps = 12;

// Sums of pieces by a level that `level_of` gives; unknown ones (negative) are left out.
struct LevelSums {
  std::vector<double> failures, expected;
};

template <class LevelOf>
LevelSums sums_by(const Pieces& pieces, const std::vector<double>& product, double per_day,
                  size_t levels, LevelOf level_of) {
  LevelSums sums{std::vector<double>(levels), std::vector<double>(levels)};
  for (size_t i = 0; i < pieces.size(); ++i) {
    const int32_t level = level_of(i);
    if (level < 0) continue;
    sums.failures[level] += pieces.failures[i];
    sums.expected[level] += pieces.exposure_days[i] * product[i] * per_day;
  }
  return sums;
}

// Failures over what the effects alone expect.
double fleet_rate(const Pieces& pieces, const std::vector<double>& product) {
  double failures = 0;
  double days = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    failures += pieces.failures[i];
    days += pieces.exposure_days[i] * product[i];
  }
  return days > 0 ? failures / days : 0;
}

void multiply(std::vector<double>& product, const Factor& factor, const Effects& effects,
              bool divide) {
  if (!effects.matter) return;
  for (size_t i = 0; i < product.size(); ++i) {
    const double effect = effects.of(factor.of_piece[i]);
    product[i] *= divide ? 1 / effect : effect;
  }
}

// Levels of which nothing was seen are as the nearest one below, or above, of which something was.
void fill_unseen(const LevelSums& sums, Effects& effects) {
  double last = 0;
  for (size_t i = 0; i < effects.mean.size(); ++i) {
    if (sums.expected[i] > 0)
      last = effects.mean[i];
    else if (last > 0)
      effects.mean[i] = last;
  }
}

}  // namespace

RateModel::RateModel(const FailureHistory& history, const PieceSettings& settings, double at_day)
    : history_(history), settings_(settings), at_day_(at_day) {
  Pieces pieces = observed_pieces(history, settings, at_day);
  cluster_size_ = pieces.cluster_size;
  for (const auto& factor : pieces.factors) names_.push_back(factor.name);
  product_.assign(pieces.size(), 1);
  failures_ = std::max(std::accumulate(pieces.failures.begin(), pieces.failures.end(), 0.0), 1.0);
  fleet_per_day_ = fleet_rate(pieces, product_);
  fit_groups(pieces);
  fit_node(pieces);
  fit_units(pieces);
  product_.clear();
}

void RateModel::fit_groups(Pieces& pieces) {
  groups_.resize(pieces.factors.size());
  const auto of_units = sums_by(pieces, product_, fleet_per_day_, history_.units.size(),
                                [&](size_t i) { return static_cast<int32_t>(pieces.unit[i]); });
  double dispersion = dispersion_of(of_units.failures, of_units.expected);
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (size_t f = 0; f < groups_.size(); ++f) {
      const Factor& factor = pieces.factors[f];
      multiply(product_, factor, groups_[f], true);
      const auto sums = sums_by(pieces, product_, fleet_per_day_, factor.levels,
                                [&](size_t i) { return factor.of_piece[i]; });
      groups_[f] = estimate_effects(sums.failures, sums.expected, dispersion);
      if (factor.ordered) fill_unseen(sums, groups_[f]);
      multiply(product_, factor, groups_[f], false);
    }
    fleet_per_day_ = fleet_rate(pieces, product_);
    const auto left = sums_by(pieces, product_, fleet_per_day_, history_.units.size(),
                              [&](size_t i) { return static_cast<int32_t>(pieces.unit[i]); });
    dispersion = dispersion_of(left.failures, left.expected);
  }
}

void RateModel::fit_node(Pieces& pieces) {
  if (pieces.node.levels == 0) return;
  const auto units = sums_by(pieces, product_, fleet_per_day_, history_.units.size(),
                             [&](size_t i) { return static_cast<int32_t>(pieces.unit[i]); });
  const auto sums = sums_by(pieces, product_, fleet_per_day_, pieces.node.levels,
                            [&](size_t i) { return pieces.node.of_piece[i]; });
  node_ =
      estimate_effects(sums.failures, sums.expected, dispersion_of(units.failures, units.expected));
  multiply(product_, pieces.node, node_, false);
}

void RateModel::fit_units(Pieces& pieces) {
  fleet_per_day_ = fleet_rate(pieces, product_);
  const auto sums = sums_by(pieces, product_, fleet_per_day_, history_.units.size(),
                            [&](size_t i) { return static_cast<int32_t>(pieces.unit[i]); });
  units_ = estimate_effects(sums.failures, sums.expected, 1);
}

std::vector<UnitRate> RateModel::rates(double horizon_days) const {
  const Pieces pieces = coming_pieces(history_, settings_, at_day_, horizon_days);
  std::map<uint32_t, std::pair<double, double>> of_unit;  // expected failures, days
  for (size_t i = 0; i < pieces.size(); ++i) {
    double effect = units_.matter ? units_.mean[pieces.unit[i]] : 1;
    for (size_t f = 0; f < groups_.size(); ++f)
      effect *= groups_[f].of(pieces.factors[f].of_piece[i]);
    if (pieces.node.levels > 0) effect *= node_.of(pieces.node.of_piece[i]);
    auto& [expected, days] = of_unit[pieces.unit[i]];
    expected += pieces.exposure_days[i] * effect * fleet_per_day_ * cluster_size_;
    days += pieces.exposure_days[i];
  }
  std::vector<UnitRate> rates;
  for (const auto& [unit, sums] : of_unit) {
    const double unknown = units_.matter ? 1 / units_.shape[unit] : 0;
    rates.push_back({unit, sums.first / sums.second, 1 / (unknown + 1 / failures_)});
  }
  return rates;
}

std::vector<FactorEvidence> RateModel::evidence() const {
  std::vector<FactorEvidence> rows;
  const auto add = [&](const std::string& name, const Effects& effects) {
    rows.push_back({name, effects.matter, effects.matter ? 1 / std::sqrt(effects.prior_shape) : 0});
  };
  for (size_t f = 0; f < groups_.size(); ++f) add(names_[f], groups_[f]);
  if (history_.has_nodes) add("node", node_);
  add("unit", units_);
  return rows;
}

}  // namespace tierpilot::gang
