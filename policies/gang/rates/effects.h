// What a factor's levels do to a failure rate: each multiplies it by a Gamma-distributed effect of
// mean 1, whose spread is found from the evidence (empirical Bayes: Efron and Morris, "Stein's
// estimation rule and its competitors", JASA 68, 1973; for counts: Clayton and Kaldor, "Empirical
// Bayes estimates of age-standardized relative risks", Biometrics 43, 1987).
#pragma once

#include <vector>

#include "policies/gang/rates/pieces.h"

namespace tierpilot::gang {

struct Effects {
  bool matter = false;     // else every mean is 1
  double prior_shape = 0;  // of the Gamma prior; large: levels are alike
  std::vector<double> mean;
  std::vector<double> shape;  // of the posterior

  double of(int32_t level) const { return matter && level >= 0 ? mean[level] : 1.0; }
};

// `failures` and `expected` are of the levels; `dispersion` (at least 1) is by how much counts vary
// more than Poisson's, which makes evidence weaker. Effects are scaled to a mean of 1, weighted by
// what was expected.
Effects estimate_effects(const std::vector<double>& failures, const std::vector<double>& expected,
                         double dispersion);

// Variance over mean of counts around what was expected, at least 1.
double dispersion_of(const std::vector<double>& failures, const std::vector<double>& expected);

}  // namespace tierpilot::gang
