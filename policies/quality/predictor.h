// Predicts the loss of a training job from what it has reported. Pure: no clocks, no files, the
// same reports give the same answers.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "policies/quality/loss_point.h"

namespace tierpilot::quality {

class Predictor {
 public:
  virtual ~Predictor() = default;
  // Whatever the loss is: values that are not finite are left out, and an iteration that is not
  // above the last one means that the job went back to there.
  virtual void observe(LossPoint point) = 0;
  // The loss as it would be reported at `iteration`; nothing before the first usable report.
  virtual std::optional<LossForecast> at(double iteration) const = 0;
  // Which family of curves it believes in most; for people.
  virtual std::string_view family() const { return ""; }
};

// "quality" is the default; the others are what it is held against.
std::span<const std::string_view> predictor_names();
// kNotFound names those that there are.
Result<std::unique_ptr<Predictor>> make_predictor(std::string_view name);
std::unique_ptr<Predictor> make_default_predictor();

}  // namespace tierpilot::quality
