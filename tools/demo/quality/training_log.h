// What a job of the demonstration wrote down, and how its loss went beside the best that any run of
// it reached. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tierpilot::demo {

struct TrainingPoint {
  double at_s = 0;  // since 1970
  double iteration = 0;
  double loss = 0;
  double cpu_s = 0;  // used until then
};

// Of train.py: a line each iteration. Lines of another form are left out.
std::vector<TrainingPoint> read_training_log(std::string_view text);

struct TrainingSeries {
  std::string name;
  double submitted_s = 0;  // since 1970, as are all
  std::vector<TrainingPoint> points;

  // (best so far - best) / (first - best): 1 until the first report, 0 once `best` is reached.
  double loss_left(double at_s, double best) const;
  // The first time that at most so much is left.
  std::optional<double> reached_s(double left, double best) const;
  double best() const;
};

// The mean of the loss left over those submitted by then and over the time from `from_s` to
// `until_s`; those that have ended count. `best`: of each, over all runs.
double mean_loss_left(const std::vector<TrainingSeries>& jobs, const std::vector<double>& best,
                      double from_s, double until_s);

// How far the default predictor is off ten reports ahead, in the median over the run, as a part of
// the loss that was reported then; nothing for a short run.
std::optional<double> prediction_error(const std::vector<TrainingPoint>& points);

}  // namespace tierpilot::demo
