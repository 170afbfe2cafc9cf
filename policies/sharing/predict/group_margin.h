// How far above a prediction the upper figure of an unseen group lies, by groups that were left out
// in turn.
#pragma once

#include <vector>

namespace tierpilot::sharing {

// `exceeds`: by group, how far targets lay above predictions that had not seen the group. Each
// group tells one figure, the quantile of its rows that is placed by; an unseen group is one more
// draw of such figures: 99 % of them are below Student's bound (The Probable Error of a Mean,
// Biometrika 1908). Groups are held to differ by about what the figures are, which counts as one
// more group (a conjugate prior: Gelman et al., Bayesian Data Analysis, 2013): the spread of two
// alone says hardly anything. Never below what a group needed, and never below 0. At least one
// group.
double group_margin(const std::vector<std::vector<double>>& exceeds);

}  // namespace tierpilot::sharing
