// Readers of what each kind of regressor saved. Where a field is missing or of another type they
// throw nlohmann's exceptions, which read_regressor() catches; nothing: the figures do not fit.
#pragma once

#include "policies/sharing/predict/regressor.h"

namespace tierpilot::sharing {

std::unique_ptr<Regressor> read_boosted_trees(const nlohmann::json& saved, size_t columns);
std::unique_ptr<Regressor> read_cost_sum(const nlohmann::json& saved, size_t columns);
std::unique_ptr<Regressor> read_kriging(const nlohmann::json& saved, size_t columns);
std::unique_ptr<Regressor> read_ridge(const nlohmann::json& saved, size_t columns);
std::unique_ptr<Regressor> read_perceptron(const nlohmann::json& saved, size_t columns);

}  // namespace tierpilot::sharing
