// Adam (Kingma and Ba: Adam, A Method for Stochastic Optimization, ICLR 2015).
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace tierpilot::sharing {

class Adam {
 public:
  Adam(size_t parameters, double rate) : rate_(rate), means_(parameters), squares_(parameters) {}

  void step(std::vector<double>& parameters, const std::vector<double>& gradients) {
    constexpr double kMean = 0.9, kSquare = 0.99, kEpsilon = 1e-8;
    mean_left_ *= kMean;
    square_left_ *= kSquare;
    for (size_t i = 0; i < parameters.size(); ++i) {
      means_[i] = kMean * means_[i] + (1 - kMean) * gradients[i];
      squares_[i] = kSquare * squares_[i] + (1 - kSquare) * gradients[i] * gradients[i];
      parameters[i] -= rate_ * (means_[i] / (1 - mean_left_)) /
                       (std::sqrt(squares_[i] / (1 - square_left_)) + kEpsilon);
    }
  }

 private:
  const double rate_;
  double mean_left_ = 1, square_left_ = 1;
  std::vector<double> means_, squares_;
};

}  // namespace tierpilot::sharing
