#include "policies/sim/plot/thin.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tierpilot::sim::plot {
namespace {

using At = std::vector<Point>::const_iterator;

// What stands for the points of one pixel column, none of which is NaN.
void append_column(At first, At last, std::vector<Point>& out) {
  const auto [low, high] =
      std::minmax_element(first, last, [](const Point& a, const Point& b) { return a.y < b.y; });
  std::array kept{first, low, high, last - 1};
  std::ranges::sort(kept);
  const auto end = std::unique(kept.begin(), kept.end());
  for (auto at = kept.begin(); at != end; ++at) out.push_back(**at);
}

}  // namespace

std::vector<Point> thin_line(const std::vector<Point>& points) {
  std::vector<Point> out, column;
  for (auto at = points.begin(); at != points.end();) {
    const double x = std::floor(at->x);
    const double here = at->x;
    column.clear();
    for (; at != points.end() && std::floor(at->x) == x; ++at)
      if (!std::isnan(at->y)) column.push_back(*at);
    if (!column.empty())
      append_column(column.begin(), column.end(), out);
    else if (!out.empty() && !std::isnan(out.back().y))
      out.push_back({here, NAN});
  }
  return out;
}

std::vector<BandPoint> thin_band(const std::vector<BandPoint>& band) {
  std::vector<BandPoint> out;
  for (const auto& point : band) {
    if (std::isnan(point.low) || std::isnan(point.high)) continue;
    if (out.empty() || std::floor(out.back().x) != std::floor(point.x)) {
      out.push_back(point);
    } else {
      out.back().low = std::min(out.back().low, point.low);
      out.back().high = std::max(out.back().high, point.high);
    }
  }
  return out;
}

}  // namespace tierpilot::sim::plot
