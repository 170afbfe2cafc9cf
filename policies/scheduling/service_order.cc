#include "policies/scheduling/service_order.h"

#include <cmath>

#include "policies/scheduling/estimate.h"

namespace tierpilot {
namespace {

// With a half, what bursts gain in the mean is half as much, and so is what it costs in the p99.
constexpr double kAging = 0.2;
// It is brought in, and what it evicts is brought back.
constexpr double kFar = 2;

double or_nominal(const WorkRate& rate, double nominal) {
  return rate.per_s() > 0 ? rate.per_s() : nominal;
}

}  // namespace

double ClusterPace::place_s(ServiceOrder order, const TaskFeatures& task, double arrival_s) const {
  if (order == ServiceOrder::kArrival) return 0;
  // What a task that does not tell takes must not hang on the others' pace.
  const bool tells = task.operations > 0 && std::isfinite(task.operations);
  const double per_s = tells ? or_nominal(operations_, kNominalRates.operations_per_s)
                             : kNominalRates.operations_per_s;
  return task.units * operations_of(task) / per_s + kAging * arrival_s;
}

double ClusterPace::far_s(ServiceOrder order, uint64_t far_bytes) const {
  if (order == ServiceOrder::kArrival) return 0;
  return kFar * static_cast<double>(far_bytes) /
         or_nominal(fetches_, kNominalRates.fetch_bytes_per_s);
}

}  // namespace tierpilot
