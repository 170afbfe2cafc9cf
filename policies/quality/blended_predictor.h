// The default predictor: every family of curves is fitted, also to shorter histories, and each
// counts by how well it would have foretold what came then, as far ahead as is asked for.
#pragma once

#include <array>
#include <vector>

#include "policies/quality/loss_history.h"
#include "policies/quality/predictor.h"
#include "policies/quality/tracked_curve.h"

namespace tierpilot::quality {

class BlendedPredictor : public Predictor {
 public:
  void observe(LossPoint point) override;
  std::optional<LossForecast> at(double iteration) const override;
  std::string_view family() const override;

 private:
  using Curves = std::array<TrackedCurve, kCurveFamilies.size()>;
  // What each family would have said, and what came.
  struct Trial {
    double log_horizon;  // of (iterations ahead / iterations seen)
    double level;        // the loss at that time
    double actual;
    std::array<double, kCurveFamilies.size()> predicted;
  };
  struct Weights {
    std::array<double, kCurveFamilies.size()> share;
    double trial_error;  // root mean square of the blend's errors in the trials
  };

  void refit() const;
  void try_from(Blocks seen, Blocks later) const;
  Weights weights_for(double log_horizon) const;

  LossHistory history_;
  // Fitted when asked for, since reports come much more often.
  mutable bool fresh_ = false;
  mutable std::vector<LossHistory::Block> current_;  // since the last change point, no outliers
  mutable double noise_ = 0;
  mutable Curves curves_;
  mutable std::array<double, kCurveFamilies.size()> smoothing_;
  mutable std::vector<Trial> trials_;
};

}  // namespace tierpilot::quality
