// By how much what jobs do exceeds what predictors say that have not seen their like (conformal
// prediction by groups: Vovk, Gammerman, Shafer: Algorithmic Learning in a Random World, 2005).
#pragma once

#include <string>
#include <vector>

namespace tierpilot::sharing {

inline constexpr size_t kMarginFolds = 8;

// Groups are dealt to a few folds, so that each is left out once; where there is one only its rows
// are, in turn. By row.
std::vector<size_t> folds_of(const std::vector<std::string>& groups);

// The quantile of what was exceeded by, of so many and one more that is not known yet; never below
// zero, and zero of nothing.
double upper_margin(std::vector<double> exceeds, double quantile);

}  // namespace tierpilot::sharing
