#include <algorithm>
#include <cmath>

#include "policies/sim/plot/chart.h"

namespace tierpilot::sim::plot {
namespace {

// NaN beyond the run's ends.
double value_at(const std::vector<Point>& run, double x, bool steps) {
  const auto after = std::ranges::lower_bound(run, x, {}, &Point::x);
  if (after == run.end()) return NAN;
  if (after->x == x) return after->y;
  if (after == run.begin()) return NAN;
  const auto before = after - 1;
  if (steps) return before->y;
  return std::lerp(before->y, after->y, (x - before->x) / (after->x - before->x));
}

}  // namespace

Series distribution(std::string name, std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  Series series{.name = std::move(name), .points = {}, .steps = true};
  if (!values.empty()) series.points.push_back({values.front(), 0});
  for (size_t i = 0; i < values.size(); ++i)
    if (i + 1 == values.size() || values[i + 1] != values[i])
      series.points.push_back(
          {values[i], static_cast<double>(i + 1) / static_cast<double>(values.size())});
  return series;
}

Series mean_and_range(std::string name, const std::vector<std::vector<Point>>& runs, bool steps) {
  Series series{.name = std::move(name), .points = {}, .steps = steps};
  if (runs.empty()) return series;
  for (const Point& at : runs.front()) {
    double sum = 0, low = INFINITY, high = -INFINITY;
    int count = 0;
    for (const auto& run : runs) {
      const double y = value_at(run, at.x, steps);
      if (!std::isfinite(y)) continue;
      sum += y;
      low = std::min(low, y);
      high = std::max(high, y);
      ++count;
    }
    series.points.push_back({at.x, sum / count});  // of no run: NaN, which is a gap
    if (count > 1) series.band.push_back({at.x, low, high});
  }
  return series;
}

}  // namespace tierpilot::sim::plot
