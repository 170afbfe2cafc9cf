#include "policies/quality/throughput.h"

#include <algorithm>
#include <cmath>

namespace tierpilot::quality {
namespace {

constexpr size_t kMaxMeasured = 64;
constexpr double kUsualSerial = 0.05;  // of measured programs that use threads at all
constexpr double kUsualError = 0.2;
constexpr double kMaxCount = 20;  // older speeds fade

}  // namespace

double amdahl_speed(double cores, double serial_share) {
  if (cores <= 1) return std::max(cores, 0.0);
  return 1 / (serial_share + (1 - serial_share) / cores);
}

void Throughput::add(double cores, double iterations_s) {
  if (!(cores > 0 && iterations_s > 0) || !std::isfinite(cores) || !std::isfinite(iterations_s))
    return;
  const auto same = std::find_if(measured_.begin(), measured_.end(),
                                 [&](const Measured& m) { return m.cores == cores; });
  if (same == measured_.end()) {
    if (measured_.size() == kMaxMeasured) measured_.erase(measured_.begin());
    measured_.push_back({cores, iterations_s, 1});
  } else {
    same->count = std::min(same->count + 1, kMaxCount);
    same->iterations_s += (iterations_s - same->iterations_s) / same->count;
  }
  fit();
}

// 1 / speed is linear: t(a) = t1 (s + (1 - s) / a), so least squares of t on (1, 1/a), above one
// core; below, t = t1 / a, which is the same line with s = 0. Solved for s with a prior at the
// usual share.
void Throughput::fit() {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  for (const auto& m : measured_) {
    if (m.cores < 1) continue;
    const double inverse = 1 / m.cores, seconds = 1 / m.iterations_s;
    n += m.count;
    x += m.count * inverse;
    y += m.count * seconds;
    xx += m.count * inverse * inverse;
    xy += m.count * inverse * seconds;
    yy += m.count * seconds * seconds;
  }
  const double spread = n * xx - x * x;
  if (n == 0 || spread <= 1e-9 * n * n) return;
  const double slope = (n * xy - x * y) / spread, intercept = (y - slope * x) / n;
  const double one_core = slope + intercept;
  if (one_core <= 0) return;
  const double left = std::max(yy - intercept * y - slope * xy, 0.0) / n;
  const double error = std::sqrt(left * xx / spread) / one_core + 1e-3;
  const double trust = kUsualError * kUsualError / (kUsualError * kUsualError + error * error);
  serial_share_ = std::clamp(trust * intercept / one_core + (1 - trust) * kUsualSerial, 0.0, 1.0);
}

}  // namespace tierpilot::quality
