#include "coordinator/core/queue/queue_order.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "policies/scheduling/work_rate.h"

namespace tierpilot {
namespace {

bool differ(double a, double b) {
  constexpr double kMuch = 1.25;
  return a > kMuch * b || b > kMuch * a;
}

}  // namespace

double operations_of(const TaskSpec& spec, double int32_to_float) {
  return spec.float_operations + spec.int_operations * int32_to_float;
}

void QueueOrder::ran(double operations, double seconds) {
  pace_.ran(believable_operations(operations, seconds), seconds);
}

void QueueOrder::fetched(double bytes, double seconds) {
  constexpr double kWorthTiming = 1 << 20;
  if (bytes >= kWorthTiming)
    pace_.fetched(std::clamp(bytes, 1e7 * seconds, 1e12 * seconds), seconds);
}

double QueueOrder::place_s(ServiceOrder order, const Task& task, int64_t now_ms) const {
  const TaskFeatures features{.operations = operations_of(task.spec, figures_.int32_to_float),
                              .units = task.spec.units};
  const double place_s = figures_.pace.place_s(
      order, features, static_cast<double>(std::min(task.submitted_ms, now_ms)) / 1e3);
  return std::isfinite(place_s) ? place_s : std::numeric_limits<double>::max();
}

bool QueueOrder::renew(ServiceOrder order, double int32_to_float) {
  const auto takes_s = [&](const Figures& figures, double operations) {
    return figures.pace.place_s(order, {.operations = operations}, 0);
  };
  const Figures now{pace_, int32_to_float};
  constexpr double kSome = 1e9;
  if (!differ(takes_s(now, kSome), takes_s(figures_, kSome)) &&
      !differ(takes_s(now, kSome * now.int32_to_float),
              takes_s(figures_, kSome * figures_.int32_to_float)))
    return false;
  figures_ = now;
  return true;
}

}  // namespace tierpilot
