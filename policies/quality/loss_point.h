// What a training job reports, and what is predicted of it.
#pragma once

namespace tierpilot::quality {

struct LossPoint {
  double iteration = 0;
  double loss = 0;
};

// A loss that is still to come. [low, high] is meant to hold the reported loss, noise included, in
// 80 % of all cases; low <= loss <= high.
struct LossForecast {
  double loss = 0;
  double low = 0;
  double high = 0;
};

}  // namespace tierpilot::quality
