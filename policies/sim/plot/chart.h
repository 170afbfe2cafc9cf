// What a chart shows, as plain values; to_svg draws it. Any value may be NaN or infinite: there the
// line has a gap and the bar is missing. Any number of points may be given: what is drawn, and so
// the size of the picture, is bounded.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tierpilot::sim::plot {

// What the numbers of an axis are; ticks and their labels follow from it.
enum class Unit {
  kNumber,
  kNanoseconds,  // shown as ns to days
  kBytes,        // shown as B to PiB
  kShare,        // 1 is shown as 100 %
};

struct Axis {
  std::string title;  // without the unit
  Unit unit = Unit::kNumber;
  bool log = false;  // values of 0 and below stand at its lower end
  // Where the axis ends; else it fits the data, and begins at 0 where that is not far away.
  std::optional<double> min{}, max{};
};

struct Point {
  double x = 0;
  double y = 0;
};

struct BandPoint {
  double x = 0;
  double low = 0;
  double high = 0;
};

struct Series {
  std::string name;
  std::vector<Point> points;      // by rising x
  std::vector<BandPoint> band{};  // shaded; by rising x
  bool steps = false;             // y holds until the next point
};

struct Chart {
  std::string title;
  std::string note{};  // a line below the title: what the shade is, which command made it
  Axis x, y;
  std::vector<Series> series;
};

struct Bar {
  double value = 0;
  std::optional<double> low{}, high{};  // an interval, drawn as a whisker
};

struct BarSeries {
  std::string name;
  std::vector<Bar> bars;  // one for each group
};

// Groups of bars side by side: workloads by policies.
struct BarChart {
  std::string title;
  std::string note{};
  Axis y;  // not log: bars stand on 0
  std::vector<std::string> groups;
  std::vector<BarSeries> series;
};

struct Page {
  std::string title;
  std::vector<std::variant<Chart, BarChart>> charts;
  unsigned columns = 2;
};

// A whole SVG document, UTF-8. Colours are Okabe and Ito's (Color Universal Design, 2008), which
// colour-blind people can tell apart; the background is the page's, light or dark.
std::string to_svg(const Chart& chart);
std::string to_svg(const BarChart& chart);
std::string to_svg(const Page& page);

// The share of `values` up to each of them: an empirical distribution function. What is not finite
// is left out.
Series distribution(std::string name, std::vector<double> values);

// The mean of several runs at each x of the first, and the range over them as band. Other runs are
// read between their points (with `steps`: as they hold), and not beyond their ends.
Series mean_and_range(std::string name, const std::vector<std::vector<Point>>& runs,
                      bool steps = false);

}  // namespace tierpilot::sim::plot
