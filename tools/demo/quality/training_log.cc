#include "tools/demo/quality/training_log.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/statistics.h"
#include "policies/quality/predictor.h"

namespace tierpilot::demo {

std::vector<TrainingPoint> read_training_log(std::string_view text) {
  std::vector<TrainingPoint> points;
  std::istringstream in{std::string(text)};
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    TrainingPoint point;
    if (words >> point.at_s >> point.iteration >> point.loss >> point.cpu_s &&
        std::isfinite(point.loss))
      points.push_back(point);
  }
  return points;
}

double TrainingSeries::best() const {
  double lowest = INFINITY;
  for (const auto& point : points) lowest = std::min(lowest, point.loss);
  return lowest;
}

double TrainingSeries::loss_left(double at_s, double best) const {
  if (points.empty() || points.front().at_s > at_s || points.front().loss <= best) return 1;
  double lowest = points.front().loss;
  for (const auto& point : points) {
    if (point.at_s > at_s) break;
    lowest = std::min(lowest, point.loss);
  }
  return (lowest - best) / (points.front().loss - best);
}

std::optional<double> TrainingSeries::reached_s(double left, double best) const {
  if (points.empty()) return {};
  const double goal = best + left * (points.front().loss - best);
  for (const auto& point : points)
    if (point.loss <= goal) return point.at_s;
  return {};
}

double mean_loss_left(const std::vector<TrainingSeries>& jobs, const std::vector<double>& best,
                      double from_s, double until_s) {
  constexpr double kStep_s = 0.25;
  double sum = 0, steps = 0;
  for (double at_s = from_s; at_s < until_s; at_s += kStep_s) {
    double left = 0, there = 0;
    for (size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].submitted_s > at_s) continue;
      left += jobs[i].loss_left(at_s, best[i]);
      ++there;
    }
    if (there == 0) continue;
    sum += left / there;
    ++steps;
  }
  return steps > 0 ? sum / steps : 1;
}

std::optional<double> prediction_error(const std::vector<TrainingPoint>& points) {
  constexpr size_t kAhead = 10, kEvery = 5;
  const auto predictor = quality::make_default_predictor();
  std::vector<double> errors;
  for (size_t i = 0; i + kAhead < points.size(); ++i) {
    predictor->observe({points[i].iteration, points[i].loss});
    if (i < kAhead || i % kEvery != 0) continue;
    const auto& then = points[i + kAhead];
    if (const auto foretold = predictor->at(then.iteration); foretold && then.loss != 0)
      errors.push_back(std::abs(foretold->loss - then.loss) / std::abs(then.loss));
  }
  if (errors.empty()) return {};
  return upper_median(std::move(errors));
}

}  // namespace tierpilot::demo
