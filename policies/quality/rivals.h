// Simpler predictors, which the default is held against.
#pragma once

#include "policies/quality/predictor.h"

namespace tierpilot::quality {

std::unique_ptr<Predictor> make_last_value();        // it stays
std::unique_ptr<Predictor> make_last_change();       // the last change goes on
std::unique_ptr<Predictor> make_exponential_mean();  // the newest report has a fifth of the weight
// The published fit: mu^(k - b) + c and 1 / (a k^2 + b k + c) + d by least squares with weights
// that decay exponentially with age, and the family that has foretold the newest reports better
// (Liu et al. 2019, after SLAQ, SoCC 2017). The decay is not published: 0.98 for each report here.
std::unique_ptr<Predictor> make_published_fit();

}  // namespace tierpilot::quality
