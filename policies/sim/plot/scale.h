// From values to pixels, and where the ticks are.
#pragma once

#include <string>
#include <vector>

#include "policies/sim/plot/chart.h"

namespace tierpilot::sim::plot {

// The smallest and the largest of the values that can be drawn: finite, and above 0 on a log axis.
class Range {
 public:
  explicit Range(bool log) : log_(log) {}
  void add(double value);
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  bool log_;
  double low_ = 1, high_ = 0;
};

struct Tick {
  double px = 0;
  std::string label;
};

class AxisScale {
 public:
  // From `begin_px` to `end_px`; `most` ticks or fewer. `round` lets the axis end at ticks.
  AxisScale(const Axis& axis, const Range& data, double begin_px, double end_px, int most,
            bool round);

  // Held within the axis; NaN stays NaN.
  double pixel(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }
  // With the unit, where the ticks' labels have none: "response time (min)".
  const std::string& title() const { return title_; }

 private:
  void fit(const Axis& axis, const Range& data);
  void place_linear(const Axis& axis, int most, bool round);
  void place_log(const Axis& axis, int most);

  bool log_;
  double low_ = 0, high_ = 1;
  double begin_px_, end_px_;
  std::vector<Tick> ticks_;
  std::string title_;
};

}  // namespace tierpilot::sim::plot
