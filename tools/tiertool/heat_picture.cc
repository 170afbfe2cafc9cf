#include "tools/tiertool/heat_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace tierpilot::tiertool {
namespace {

constexpr std::string_view kShades = ".:-=+*#%@";
constexpr double kDecades = 3;  // from the faintest shade to the strongest
constexpr size_t kRows = 128;
constexpr int kWidth = 960, kHeight = 640, kLeft = 130, kTop = 40, kBottom = 40;

// 0 for nothing, up to 1.
double intensity(double heat, double hottest) {
  if (heat <= 0 || hottest <= 0) return 0;
  return std::clamp(1 + std::log10(heat / hottest) / kDecades, 0.01, 1.0);
}

// The hottest of what is known between the two addresses; nothing when nothing is.
std::optional<float> heat_between(std::span<const HeatRegion> regions, uint64_t from, uint64_t to) {
  std::optional<float> heat;
  auto region = std::lower_bound(regions.begin(), regions.end(), from,
                                 [](const auto& r, uint64_t at) { return r.end <= at; });
  for (; region != regions.end() && region->start < to; ++region)
    if (region->updates > 0) heat = std::max(heat.value_or(0), region->heat);
  return heat;
}

// White over yellow and red to black, as in thermography but readable in print.
std::string colour(double intensity) {
  const auto channel = [](double value) {
    return static_cast<int>(std::clamp(value, 0.0, 1.0) * 255);
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(2.2 - 1.6 * intensity),
                     channel(1.3 - 1.4 * intensity), channel(1 - 3 * intensity));
}

struct Row {
  uint64_t from = 0, to = 0;
};

// Cuts the stretches, as if they stood without gaps, into kRows rows.
std::vector<Row> rows_of(const std::vector<TrackedRange>& stretches) {
  uint64_t all = 0;
  for (const auto& stretch : stretches) all += stretch.bytes();
  const uint64_t step = std::max<uint64_t>((all + kRows - 1) / kRows, kBasePageBytes);
  std::vector<Row> rows;
  for (const auto& stretch : stretches)
    for (uint64_t at = stretch.start; at < stretch.end; at += step)
      rows.push_back({at, std::min(at + step, stretch.end)});
  return rows;
}

}  // namespace

std::string heat_line(std::span<const HeatRegion> regions, uint64_t start, uint64_t end,
                      size_t width, float hottest) {
  std::string line(width, '?');
  const double step = static_cast<double>(end - start) / static_cast<double>(width);
  for (size_t i = 0; i < width; ++i) {
    const auto from = start + static_cast<uint64_t>(step * static_cast<double>(i));
    const auto to =
        std::max(start + static_cast<uint64_t>(step * static_cast<double>(i + 1)), from + 1);
    const auto heat = heat_between(regions, from, to);
    if (!heat) continue;
    const double strength = intensity(*heat, hottest);
    line[i] =
        strength == 0
            ? ' '
            : kShades[static_cast<size_t>(strength * static_cast<double>(kShades.size() - 1))];
  }
  return line;
}

std::string heat_svg(const std::vector<HeatFrame>& frames, const std::string& title) {
  const auto rows =
      frames.empty() ? std::vector<Row>{} : rows_of(stretches_of(frames.back().regions));
  float hottest = 0;
  for (const auto& frame : frames) hottest = std::max(hottest, hottest_of(frame.regions));
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"24\" font-size=\"15\">{3}</text>\n",
      kWidth, kHeight, kLeft, title);
  const double width = static_cast<double>(kWidth - kLeft - 20) /
                       static_cast<double>(std::max<size_t>(frames.size(), 1));
  const double height = static_cast<double>(kHeight - kTop - kBottom) /
                        static_cast<double>(std::max<size_t>(rows.size(), 1));
  for (size_t column = 0; column < frames.size(); ++column)
    for (size_t row = 0; row < rows.size(); ++row) {
      const auto heat = heat_between(frames[column].regions, rows[row].from, rows[row].to);
      if (heat && *heat == 0) continue;
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
          kLeft + width * static_cast<double>(column), kTop + height * static_cast<double>(row),
          width + 0.3, height + 0.3, heat ? colour(intensity(*heat, hottest)) : "#dddddd");
    }
  for (size_t row = 0; row < rows.size(); row += std::max<size_t>(rows.size() / 8, 1))
    svg += fmt::format("<text x=\"4\" y=\"{:.0f}\">{:#x}</text>\n",
                       kTop + height * static_cast<double>(row) + 10, rows[row].from);
  svg += fmt::format(
      "<text x=\"{}\" y=\"{}\">0 s to {:.1f} s; black: {:.3g} accesses per page and "
      "second; grey: not known</text>\n</svg>\n",
      kLeft, kHeight - 14, frames.empty() ? 0 : frames.back().at_s, hottest);
  return svg;
}

std::vector<TrackedRange> stretches_of(std::span<const HeatRegion> regions) {
  std::vector<TrackedRange> stretches;
  for (const auto& region : regions) {
    if (!stretches.empty() && stretches.back().end == region.start)
      stretches.back().end = region.end;
    else
      stretches.push_back({region.start, region.end});
  }
  return stretches;
}

float hottest_of(std::span<const HeatRegion> regions) {
  float hottest = 0;
  for (const auto& region : regions) hottest = std::max(hottest, region.heat);
  return hottest;
}

}  // namespace tierpilot::tiertool
