// What an evaluation says.
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

namespace tierpilot::sharing {

// NAN where it says nothing of them: no comparison with that is true.
inline double error_of(const nlohmann::ordered_json& study, const std::string& split,
                       const std::string& predictor) {
  for (const auto& score : study["scores"])
    if (score["split"] == split && score["predictor"] == predictor)
      return score["error"].get<double>();
  return NAN;
}

}  // namespace tierpilot::sharing
