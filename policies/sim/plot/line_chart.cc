#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "policies/sim/plot/frame.h"
#include "policies/sim/plot/thin.h"

namespace tierpilot::sim::plot {
namespace {

constexpr double kFootPx = 44;  // for the x axis' labels and title

// On a log axis what is 0 or below stands at the axis' end; NaN and infinity are gaps.
double drawable(double value) {
  return std::isfinite(value) ? value : NAN;
}

std::vector<Point> to_pixels(const Series& series, const AxisScale& x, const AxisScale& y) {
  std::vector<Point> out;
  for (const auto& point : series.points) {
    const double at_x = x.pixel(drawable(point.x));
    if (std::isnan(at_x)) continue;
    if (series.steps && !out.empty()) out.push_back({at_x, out.back().y});
    out.push_back({at_x, y.pixel(drawable(point.y))});
  }
  std::ranges::stable_sort(out, {}, &Point::x);
  return thin_line(out);
}

std::vector<BandPoint> to_pixels(const std::vector<BandPoint>& band, const AxisScale& x,
                                 const AxisScale& y) {
  std::vector<BandPoint> out;
  for (const auto& point : band) {
    const double at_x = x.pixel(drawable(point.x));
    if (!std::isnan(at_x))
      out.push_back({at_x, y.pixel(drawable(point.low)), y.pixel(drawable(point.high))});
  }
  std::ranges::stable_sort(out, {}, &BandPoint::x);
  return thin_band(out);
}

std::string line_path(const std::vector<Point>& points) {
  std::string path;
  bool down = false;
  for (const auto& point : points) {
    if (std::isnan(point.y)) {
      down = false;
      continue;
    }
    fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", down ? "L" : "M", point.x, point.y);
    // A lone point shows as a dot.
    if (!down) path += "h0";
    down = true;
  }
  return path;
}

std::string band_path(const std::vector<BandPoint>& band) {
  std::string path;
  for (const auto& point : band)
    fmt::format_to(std::back_inserter(path), "{}{:.1f} {:.1f}", path.empty() ? "M" : "L", point.x,
                   point.low);
  for (auto at = band.rbegin(); at != band.rend(); ++at)
    fmt::format_to(std::back_inserter(path), "L{:.1f} {:.1f}", at->x, at->high);
  return path.empty() ? path : path + "Z";
}

struct Ranges {
  Range x, y;
};

Ranges ranges_of(const Chart& chart) {
  Ranges ranges{Range(chart.x.log), Range(chart.y.log)};
  for (const auto& series : chart.series) {
    for (const auto& [x, y] : series.points) {
      ranges.x.add(x);
      ranges.y.add(y);
    }
    for (const auto& [x, low, high] : series.band) {
      ranges.x.add(x);
      ranges.y.add(low);
      ranges.y.add(high);
    }
  }
  return ranges;
}

}  // namespace

void draw(Svg& svg, const Chart& chart) {
  const size_t shown = std::min(chart.series.size(), kMaxSeries);
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i) names.push_back(chart.series[i].name);
  std::string note = chart.note;
  if (shown < chart.series.size())
    note += fmt::format(" The first {} of {} lines.", shown, chart.series.size());
  Area area{.left = 0,
            .top = draw_head(svg, chart.title, note, names, true),
            .right = kChartWidth - 8,
            .bottom = kChartHeight - kFootPx};
  const auto ranges = ranges_of(chart);
  const AxisScale y(chart.y, ranges.y, area.bottom, area.top, 6, true);
  area.left = left_for(y);
  const AxisScale x(chart.x, ranges.x, area.left, area.right, 9, false);
  draw_y_axis(svg, y, area);
  draw_x_axis(svg, x, area);
  for (size_t i = 0; i < shown; ++i)
    if (const auto path = band_path(to_pixels(chart.series[i].band, x, y)); !path.empty())
      svg.area(path, colour_of(i));
  for (size_t i = 0; i < shown; ++i)
    if (const auto path = line_path(to_pixels(chart.series[i], x, y)); !path.empty())
      svg.curve(path, colour_of(i), dash_of(i));
  if (ranges.x.empty() || ranges.y.empty())
    svg.text((area.left + area.right) / 2, (area.top + area.bottom) / 2, "no data",
             {.anchor = Anchor::kMiddle});
}

}  // namespace tierpilot::sim::plot
