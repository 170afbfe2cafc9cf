#include "policies/sim/plot/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/text/thousands.h"

namespace tierpilot::sim::plot {
namespace {

constexpr double kLargest = 1e300;  // differences of such values are still finite

struct Measure {
  double size;  // in the axis' own unit
  std::string_view name;
};
using Measures = std::span<const Measure>;

constexpr std::array kDurations{Measure{1, "ns"},     Measure{1e3, "µs"},   Measure{1e6, "ms"},
                                Measure{1e9, "s"},    Measure{60e9, "min"}, Measure{3600e9, "h"},
                                Measure{86400e9, "d"}};
constexpr std::array kSizes{Measure{1, "B"},        Measure{0x1p10, "KiB"}, Measure{0x1p20, "MiB"},
                            Measure{0x1p30, "GiB"}, Measure{0x1p40, "TiB"}, Measure{0x1p50, "PiB"}};
constexpr std::array kPercent{Measure{0.01, "%"}};
constexpr std::array kNumbers{Measure{1, ""}, Measure{1e6, "million"}, Measure{1e9, "billion"},
                              Measure{1e12, "trillion"}};

Measures measures(Unit unit) {
  switch (unit) {
    case Unit::kNanoseconds:
      return kDurations;
    case Unit::kBytes:
      return kSizes;
    case Unit::kShare:
      return kPercent;
    case Unit::kNumber:
      break;
  }
  return kNumbers;
}

// The largest of which `value` is at least `times`.
Measure measure_for(Unit unit, double value, double times) {
  const auto all = measures(unit);
  size_t i = 0;
  while (i + 1 < all.size() && value >= times * all[i + 1].size) ++i;
  return all[i];
}

// With as many decimals as tell one step from the next.
std::string format_value(double value, double step) {
  if (std::abs(value) >= 1e15 || step < 1e-6) return fmt::format("{:.6g}", value);
  const int decimals = std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  return with_thousands(fmt::format("{:.{}f}", value, decimals));
}

// The smallest round step that is at least `least`: of 1, 2, 5 and powers of ten, or, of seconds,
// minutes and hours, what divides the next unit.
double round_step(double least, std::string_view measure) {
  static constexpr double kSixtieths[] = {1, 2, 5, 10, 15, 20, 30, 60};
  static constexpr double kHours[] = {1, 2, 3, 6, 12, 24, 48};
  std::span<const double> parts;
  if (measure == "s" || measure == "min") parts = kSixtieths;
  if (measure == "h") parts = kHours;
  for (const double step : parts)
    if (least > 0.5 && step >= least) return step;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double step : {power, 2 * power, 5 * power})
    if (step >= least * (1 - 1e-9)) return step;
  return 10 * power;
}

enum class Density { kMeasures, kDecades, kFine };

// Within [low, high]: 1 of each measure, its decades, or also 2 and 5 of these; none so close to
// the next measure that it would read like it.
std::vector<double> log_ticks(Unit unit, double low, double high, Density density) {
  static constexpr double kFactors[] = {1, 2, 5};
  std::vector<double> ticks;
  const auto all = measures(unit);
  for (size_t i = 0; i < all.size(); ++i) {
    const double from = all[i].size;
    const double until = i + 1 < all.size() ? all[i + 1].size : INFINITY;
    const double first = i == 0 ? std::pow(10, std::floor(std::log10(low / from))) : 1;
    for (double power = first * from; power < until && power <= high; power *= 10) {
      if (density == Density::kMeasures && power != from) continue;
      for (const double factor : std::span(kFactors, density == Density::kFine ? 3 : 1))
        if (const double at = factor * power;
            2 * at <= until && at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9))
          ticks.push_back(at);
    }
  }
  return ticks;
}

std::vector<double> log_ticks(Unit unit, double low, double high, size_t most) {
  const bool has_measures = unit == Unit::kNanoseconds || unit == Unit::kBytes;
  auto ticks = log_ticks(unit, low, high, Density::kDecades);
  if (ticks.size() < 4) ticks = log_ticks(unit, low, high, Density::kFine);
  if (ticks.size() > most && has_measures) ticks = log_ticks(unit, low, high, Density::kMeasures);
  const size_t every = std::max<size_t>((ticks.size() + most - 1) / most, 1);
  for (size_t i = 0; i * every < ticks.size(); ++i) ticks[i] = ticks[i * every];
  ticks.resize((ticks.size() + every - 1) / every);
  return ticks;
}

}  // namespace

void Range::add(double value) {
  if (!(std::abs(value) <= kLargest) || (log_ && value < 1 / kLargest)) return;
  if (empty()) {
    low_ = high_ = value;
  } else {
    low_ = std::min(low_, value);
    high_ = std::max(high_, value);
  }
}

AxisScale::AxisScale(const Axis& axis, const Range& data, double begin_px, double end_px, int most,
                     bool round)
    : log_(axis.log), begin_px_(begin_px), end_px_(end_px), title_(axis.title) {
  fit(axis, data);
  if (log_)
    place_log(axis, most);
  else
    place_linear(axis, most, round);
}

void AxisScale::fit(const Axis& axis, const Range& data) {
  Range range(log_);
  if (!data.empty()) {
    range.add(data.low());
    range.add(data.high());
  }
  low_ = range.empty() ? (log_ ? 1 : 0) : range.low();
  high_ = range.empty() ? 1 : range.high();
  if (!log_ && low_ > 0 && low_ < 0.6 * high_) low_ = 0;
  if (axis.min && std::isfinite(*axis.min) && (!log_ || *axis.min > 0)) low_ = *axis.min;
  if (axis.max && std::isfinite(*axis.max) && (!log_ || *axis.max > 0)) high_ = *axis.max;
  // Wide enough for ticks that doubles can tell apart.
  if (log_ && high_ < low_ * 1.01) high_ = low_ * 10;
  const double least = 1e-9 * std::max(std::abs(low_), std::abs(high_));
  if (!log_ && high_ - low_ <= least) {
    if (low_ > 0) low_ = 0;
    if (high_ <= 0) high_ = low_ < 0 ? 0 : 1;
  }
}

void AxisScale::place_linear(const Axis& axis, int most, bool round) {
  const auto measure = measure_for(axis.unit, std::max(std::abs(low_), std::abs(high_)), 2);
  const double step = round_step((high_ - low_) / measure.size / most, measure.name);
  const double first = std::ceil(low_ / measure.size / step - 1e-9);
  const double last = std::floor(high_ / measure.size / step + 1e-9);
  const bool down = round && !axis.min && first * step * measure.size > low_ * (1 + 1e-9);
  const bool up = round && !axis.max && last * step * measure.size < high_ * (1 - 1e-9);
  if (down) low_ = (first - 1) * step * measure.size;
  if (up) high_ = (last + 1) * step * measure.size;
  const bool percent = measure.name == "%";
  for (double i = first - down; i <= last + up; ++i)
    ticks_.push_back({pixel(i * step * measure.size),
                      format_value(i * step + 0.0, step) + (percent ? " %" : "")});
  if (!percent && !measure.name.empty()) title_ += fmt::format(" ({})", measure.name);
}

void AxisScale::place_log(const Axis& axis, int most) {
  for (const double at : log_ticks(axis.unit, low_, high_, static_cast<size_t>(most))) {
    const auto measure = measure_for(axis.unit, at * (1 + 1e-9), 1);
    const char* gap = measure.name.empty() ? "" : " ";
    ticks_.push_back({pixel(at), fmt::format("{:.4g}{}{}", at / measure.size, gap, measure.name)});
  }
}

double AxisScale::pixel(double value) const {
  if (std::isnan(value)) return value;
  const double held = std::clamp(value, low_, high_);
  const double share =
      log_ ? std::log(held / low_) / std::log(high_ / low_) : (held - low_) / (high_ - low_);
  return begin_px_ + share * (end_px_ - begin_px_);
}

}  // namespace tierpilot::sim::plot
