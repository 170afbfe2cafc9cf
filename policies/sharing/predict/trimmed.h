// A regressor that leaves out rows of which the measurement went wrong.
#pragma once

#include <memory>

#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

// Fitted, and again without the rows that lie more than five robust deviations off: a step of
// reweighted least squares (Rousseeuw and Leroy, Robust Regression and Outlier Detection, 1987).
// At least half of the rows stay.
std::unique_ptr<Regressor> make_trimmed(std::unique_ptr<Regressor> regressor);

}  // namespace tierpilot::sharing
