#include <algorithm>

#include "policies/sim/plot/frame.h"

namespace tierpilot::sim::plot {
namespace {

constexpr double kMarginPx = 16;
constexpr double kGapPx = 36;

template <class AnyChart>
std::string one(const AnyChart& chart) {
  Svg svg;
  svg.begin_group(kMarginPx, kMarginPx);
  draw(svg, chart);
  svg.end_group();
  return svg.document(kChartWidth + 2 * kMarginPx, kChartHeight + 2 * kMarginPx, chart.title);
}

}  // namespace

std::string to_svg(const Chart& chart) {
  return one(chart);
}

std::string to_svg(const BarChart& chart) {
  return one(chart);
}

std::string to_svg(const Page& page) {
  constexpr double kTitlePx = 20;
  const size_t columns =
      std::clamp<size_t>(page.columns, 1, std::max<size_t>(page.charts.size(), 1));
  const size_t rows = (page.charts.size() + columns - 1) / columns;
  const double head = page.title.empty() ? kMarginPx : kMarginPx + kTitlePx + kGapPx / 2;
  const double width = static_cast<double>(columns) * (kChartWidth + kGapPx) - kGapPx;
  const double height = static_cast<double>(rows) * (kChartHeight + kGapPx) - (rows ? kGapPx : 0);
  Svg svg;
  svg.text(kMarginPx, kMarginPx + kTitlePx - 4, fit_text(page.title, kTitlePx, width),
           {.size_px = kTitlePx, .bold = true});
  for (size_t i = 0; i < page.charts.size(); ++i) {
    svg.begin_group(kMarginPx + static_cast<double>(i % columns) * (kChartWidth + kGapPx),
                    head + static_cast<double>(i / columns) * (kChartHeight + kGapPx));
    std::visit([&svg](const auto& chart) { draw(svg, chart); }, page.charts[i]);
    svg.end_group();
  }
  return svg.document(width + 2 * kMarginPx, head + height + kMarginPx, page.title);
}

}  // namespace tierpilot::sim::plot
