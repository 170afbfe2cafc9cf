#include "policies/sim/plot/frame.h"

#include <algorithm>
#include <array>

namespace tierpilot::sim::plot {
namespace {

// Okabe and Ito's without black and yellow, which vanish on a dark or a light page.
constexpr std::array<std::string_view, 6> kColours{"#0072B2", "#D55E00", "#009E73",
                                                   "#CC79A7", "#E69F00", "#56B4E9"};
constexpr std::array<std::string_view, 4> kDashes{"", "7 4", "2 4", "9 4 2 4"};
constexpr double kSwatchPx = 20;
constexpr double kRowPx = 18;

double draw_legend(Svg& svg, double top, const std::vector<std::string>& names, bool lines) {
  double x = 0, y = top + 12;
  for (size_t i = 0; i < names.size(); ++i) {
    const auto name = fit_text(names[i], kLabelPx, kChartWidth - kSwatchPx - 8);
    const double width = kSwatchPx + 6 + text_width(name, kLabelPx) + 16;
    if (x > 0 && x + width > kChartWidth) {
      x = 0;
      y += kRowPx;
    }
    if (lines)
      svg.curve("M" + std::to_string(static_cast<int>(x) + 1) + " " +
                    std::to_string(static_cast<int>(y) - 4) + "h18",
                colour_of(i), dash_of(i));
    else
      svg.rect(x + 4, y - 10, 12, 12, colour_of(i));
    svg.text(x + kSwatchPx + 6, y, name, {});
    x += width;
  }
  return y + 10;
}

}  // namespace

std::string_view colour_of(size_t series) {
  return kColours[series % kColours.size()];
}

std::string_view dash_of(size_t series) {
  return kDashes[series / kColours.size() % kDashes.size()];
}

double draw_head(Svg& svg, std::string_view title, std::string_view note,
                 const std::vector<std::string>& names, bool lines) {
  constexpr double kTitlePx = 15, kNotePx = 11;
  double y = 16;
  svg.text(0, y, fit_text(title, kTitlePx, kChartWidth), {.size_px = kTitlePx, .bold = true});
  if (!note.empty())
    svg.text(0, y += 17, fit_text(note, kNotePx, kChartWidth), {.size_px = kNotePx});
  y += 8;
  // One line needs no legend: the title tells what it is.
  return (names.size() > 1 ? draw_legend(svg, y, names, lines) : y) + 30;
}

double left_for(const AxisScale& y) {
  double widest = 0;
  for (const auto& tick : y.ticks()) widest = std::max(widest, text_width(tick.label, kLabelPx));
  return std::min(widest + 8, kChartWidth / 3);
}

void draw_y_axis(Svg& svg, const AxisScale& y, const Area& area) {
  svg.text(0, area.top - 15, fit_text(y.title(), kLabelPx, kChartWidth), {});
  for (const auto& tick : y.ticks()) {
    svg.line(area.left, tick.px, area.right, tick.px, "grid");
    svg.text(area.left - 7, tick.px + 4, tick.label, {.anchor = Anchor::kEnd});
  }
}

void draw_x_axis(Svg& svg, const AxisScale& x, const Area& area) {
  svg.line(area.left, area.bottom, area.right, area.bottom, "axis");
  double free_from = 0;
  for (const auto& tick : x.ticks()) {
    svg.line(tick.px, area.bottom, tick.px, area.bottom + 4, "axis");
    const double half = text_width(tick.label, kLabelPx) / 2;
    const double middle = std::min(tick.px, kChartWidth - half);
    if (middle - half < free_from) continue;
    svg.text(middle, area.bottom + 18, tick.label, {.anchor = Anchor::kMiddle});
    free_from = middle + half + 6;
  }
  svg.text((area.left + area.right) / 2, area.bottom + 36,
           fit_text(x.title(), kLabelPx, area.right - area.left), {.anchor = Anchor::kMiddle});
}

}  // namespace tierpilot::sim::plot
