#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "policies/sim/plot/frame.h"

namespace tierpilot::sim::plot {
namespace {

constexpr size_t kMaxGroups = 60;
constexpr double kTurnedDegrees = -30;
constexpr double kMaxTurnedPx = 140;

Range range_of(const BarChart& chart) {
  Range range(false);
  range.add(0);
  for (const auto& series : chart.series)
    for (const auto& bar : series.bars) {
      range.add(bar.value);
      range.add(bar.low.value_or(NAN));
      range.add(bar.high.value_or(NAN));
    }
  return range;
}

void draw_bar(Svg& svg, const Bar& bar, const AxisScale& y, double x, double width,
              std::string_view colour) {
  if (!std::isfinite(bar.value)) {
    svg.text(x + width / 2, y.pixel(0) - 4, "–", {.anchor = Anchor::kMiddle});
    return;
  }
  const double zero = y.pixel(0), top = y.pixel(bar.value);
  svg.rect(x, std::min(zero, top), width, std::abs(zero - top), colour);
  const double low = y.pixel(bar.low.value_or(NAN)), high = y.pixel(bar.high.value_or(NAN));
  if (std::isnan(low) || std::isnan(high)) return;
  const double middle = x + width / 2, arm = std::min(width / 4, 4.0);
  svg.line(middle, low, middle, high, "whisker");
  svg.line(middle - arm, low, middle + arm, low, "whisker");
  svg.line(middle - arm, high, middle + arm, high, "whisker");
}

// The groups' names below the bars: in one or two lines, or turned where that is too narrow.
class Foot {
 public:
  Foot(const std::vector<std::string>& groups, double group_px) {
    double widest = 0, widest_line = 0;
    for (const auto& group : groups) {
      widest = std::max(widest, text_width(group, kLabelPx));
      lines_.push_back(in_two(group));
      for (const auto& line : lines_.back())
        widest_line = std::max(widest_line, text_width(line, kLabelPx));
    }
    if (widest + 6 <= group_px) {
      for (size_t i = 0; i < groups.size(); ++i) lines_[i] = {groups[i], ""};
    } else if (widest_line + 6 <= group_px) {
      height_ = 40;
    } else {
      turned_ = true;
      height_ = 26 + std::min(widest, kMaxTurnedPx) / 2;
      for (size_t i = 0; i < groups.size(); ++i) lines_[i] = {groups[i], ""};
    }
  }

  double height() const { return height_; }

  void draw_name(Svg& svg, size_t group, double x, double y) const {
    const auto& [first, second] = lines_[group];
    if (turned_) {
      const double room = std::min(kMaxTurnedPx, (x + 4) / std::cos(kTurnedDegrees * M_PI / 180));
      return svg.text(x + 4, y + 16, fit_text(first, kLabelPx, room),
                      {.anchor = Anchor::kEnd, .turn_degrees = kTurnedDegrees});
    }
    svg.text(x, y + 17, first, {.anchor = Anchor::kMiddle});
    if (!second.empty()) svg.text(x, y + 31, second, {.anchor = Anchor::kMiddle});
  }

 private:
  using Lines = std::array<std::string, 2>;
  // Cut at the space that is nearest to the middle.
  static Lines in_two(const std::string& name) {
    size_t best = std::string::npos;
    const auto off = [&name](size_t at) {
      return std::abs(2.0 * at - static_cast<double>(name.size()));
    };
    for (size_t at = name.find(' '); at != std::string::npos; at = name.find(' ', at + 1))
      if (best == std::string::npos || off(at) < off(best)) best = at;
    if (best == std::string::npos) return {name, ""};
    return {name.substr(0, best), name.substr(best + 1)};
  }

  std::vector<Lines> lines_;
  bool turned_ = false;
  double height_ = 26;
};

}  // namespace

void draw(Svg& svg, const BarChart& chart) {
  const size_t shown = std::min(chart.series.size(), kMaxSeries);
  std::vector<std::string> groups(
      chart.groups.begin(),
      chart.groups.begin() + static_cast<ptrdiff_t>(std::min(chart.groups.size(), kMaxGroups)));
  std::vector<std::string> names;
  for (size_t i = 0; i < shown; ++i) names.push_back(chart.series[i].name);
  std::string note = chart.note;
  if (shown < chart.series.size() || groups.size() < chart.groups.size())
    note += fmt::format(" The first {} of {} groups, {} of {} bars of each.", groups.size(),
                        chart.groups.size(), shown, chart.series.size());
  const double count = static_cast<double>(std::max<size_t>(groups.size(), 1));
  const Foot foot(groups, (kChartWidth - 60) / count);
  Area area{.left = 0,
            .top = draw_head(svg, chart.title, note, names, false),
            .right = kChartWidth - 8,
            .bottom = kChartHeight - foot.height()};
  Axis axis = chart.y;
  axis.log = false;
  const AxisScale y(axis, range_of(chart), area.bottom, area.top, 6, true);
  area.left = left_for(y);
  draw_y_axis(svg, y, area);
  const double group_px = (area.right - area.left) / count;
  const double bar_px = group_px * 0.8 / static_cast<double>(std::max<size_t>(shown, 1));
  for (size_t group = 0; group < groups.size(); ++group) {
    const double begin = area.left + group_px * (static_cast<double>(group) + 0.1);
    for (size_t i = 0; i < shown; ++i)
      if (group < chart.series[i].bars.size())
        draw_bar(svg, chart.series[i].bars[group], y, begin + bar_px * static_cast<double>(i),
                 bar_px * 0.92, colour_of(i));
    foot.draw_name(svg, group, begin + group_px * 0.4, area.bottom);
  }
  svg.line(area.left, y.pixel(0), area.right, y.pixel(0), "axis");
  if (groups.empty() || shown == 0)
    svg.text((area.left + area.right) / 2, (area.top + area.bottom) / 2, "no data",
             {.anchor = Anchor::kMiddle});
}

}  // namespace tierpilot::sim::plot
