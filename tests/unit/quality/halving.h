// A curve that is known.
#pragma once

#include <cmath>
#include <optional>

#include "policies/quality/predictor.h"

namespace tierpilot::quality {

// A predictor that is told its curve: the loss halves every `half_life` iterations.
class Halving : public Predictor {
 public:
  explicit Halving(double half_life) : half_life_(half_life) {}
  void observe(LossPoint) override {}
  std::optional<LossForecast> at(double iteration) const override {
    const double loss = std::exp2(-iteration / half_life_);
    return LossForecast{loss, loss, loss};
  }

 private:
  double half_life_;
};

}  // namespace tierpilot::quality
