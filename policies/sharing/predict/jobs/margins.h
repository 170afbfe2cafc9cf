// By how much what jobs do exceeds what predictors say that have not seen their like.
//
// Rows of one architecture err alike, so that a new architecture is one more draw of architectures,
// not of rows. Of one row drawn from each of K architectures and one of a new one the latter is the
// largest in one of K + 1 cases at most, however alike rows of an architecture are (conformal
// prediction with one draw per group: Dunn, Wasserman, Ramdas, Distribution-Free Prediction Sets
// for Two-Layer Hierarchical Models, JASA 118(544), 2022). What is drawn would decide, so the mean
// of all draws is taken: where large errors become rarer with their size, it is exceeded no more
// often.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace tierpilot::sharing {

inline constexpr size_t kMostMarginFolds = 32;

// Each group is left out once: alone, or with a few others where there are many; where there is one
// only its rows are, in turn. By row.
std::vector<size_t> folds_of(const std::vector<std::string>& groups);

// What rows exceed predictions by, by group.
using Exceeds = std::map<std::string, std::vector<double>>;

// What rows of a group that is not known yet exceed in one of 1 / (1 - quantile) cases; never below
// zero, and zero of nothing. Of few groups several rows each are drawn: one each cannot tell of
// what is rarer than one in K + 1, and rows tell of that as if they were independent there. One
// group alone is a set of rows.
double upper_margin(const Exceeds& exceeds, double quantile);

}  // namespace tierpilot::sharing
