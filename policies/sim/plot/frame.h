// What line and bar charts have in common: head, legend, axes, colours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policies/sim/plot/scale.h"
#include "policies/sim/plot/svg.h"

namespace tierpilot::sim::plot {

inline constexpr double kChartWidth = 640;
inline constexpr double kChartHeight = 380;
inline constexpr double kLabelPx = 12;
inline constexpr size_t kMaxSeries = 24;

// The i-th series' colour, and the dashes that tell a colour's second use from its first.
std::string_view colour_of(size_t series);
std::string_view dash_of(size_t series);

struct Area {
  double left = 0, top = 0, right = 0, bottom = 0;
};

// Title, note and legend (above the data, never over it), and the y axis' title below them. Gives
// the y where the data's area begins.
double draw_head(Svg& svg, std::string_view title, std::string_view note,
                 const std::vector<std::string>& names, bool lines);

// The left end of the data's area, so that the labels of `y` have room.
double left_for(const AxisScale& y);
void draw_y_axis(Svg& svg, const AxisScale& y, const Area& area);
void draw_x_axis(Svg& svg, const AxisScale& x, const Area& area);

// At the origin of `svg`'s present group, kChartWidth by kChartHeight.
void draw(Svg& svg, const Chart& chart);
void draw(Svg& svg, const BarChart& chart);

}  // namespace tierpilot::sim::plot
