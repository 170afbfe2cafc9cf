// Failure rates of units: a product of the fleet's rate and of effects of groups, of the node and
// of the unit itself, each shrunk to 1 as far as the evidence says: a hierarchical Gamma-Poisson
// model. Groups are found first, against counts whose spread within units weakens their evidence;
// then nodes, given the groups; then units, given both.
#pragma once

#include "policies/gang/rates/effects.h"
#include "policies/gang/rates/pieces.h"

namespace tierpilot::gang {

struct UnitRate {
  uint32_t unit = 0;
  double per_day = 0;  // mean
  double shape = 0;    // of its Gamma distribution
};

struct FactorEvidence {
  std::string name;
  bool matters = false;
  double spread = 0;  // standard deviation of its effects, 0 when it does not matter
};

class RateModel {
 public:
  // From what happened until `at_day`.
  RateModel(const FailureHistory& history, const PieceSettings& settings, double at_day);

  // Of each unit that is in service at `at_day`, in the mean of the time until the horizon.
  std::vector<UnitRate> rates(double horizon_days) const;
  std::vector<FactorEvidence> evidence() const;
  double cluster_size() const { return cluster_size_; }

 private:
  void fit_groups(Pieces& pieces);
  void fit_node(Pieces& pieces);
  void fit_units(Pieces& pieces);

  const FailureHistory& history_;
  const PieceSettings settings_;
  const double at_day_;
  double fleet_per_day_ = 0;
  double cluster_size_ = 1;
  double failures_ = 1;  // as they were weighted: how well the fleet's rate is known
  std::vector<std::string> names_;
  std::vector<Effects> groups_;
  Effects node_;
  Effects units_;
  std::vector<double> product_;  // of the effects so far, of each piece; while it is fitted
};

}  // namespace tierpilot::gang
