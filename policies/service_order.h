// Which of the tasks that wait for room is served next, in the coordinator as in the simulator.
//
// The one that should be done soonest (shortest expected processing time: Rothkopf, Management
// Science 12(9), 1966), since that makes the mean response least, but a task gains a tenth of the
// time that it has waited: it is overtaken by those only that come within ten times the difference
// between its expected time and theirs. Tasks whose data is in no fast memory come later: to bring
// it in takes links and evicts what the next tasks need.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "policies/estimate.h"
#include "policies/values.h"
#include "policies/work_rate.h"

namespace tierpilot {

enum class ServiceOrder : uint8_t {
  kArrival,   // first come, first served
  kShortest,  // as above
};

constexpr std::optional<ServiceOrder> service_order_from_name(std::string_view name) {
  if (name == "arrival") return ServiceOrder::kArrival;
  if (name == "shortest") return ServiceOrder::kShortest;
  return std::nullopt;
}

// Where a task stands: a time in seconds that says something only beside another's, and its number.
using QueuePlace = std::pair<double, uint64_t>;

// What the tasks of a whole cluster show, whichever node they run on.
class ClusterPace {
 public:
  // That one unit did so many operations in so long, or that so many bytes came over a link.
  void ran(double operations, double seconds) { operations_.add(operations, seconds); }
  void fetched(double bytes, double seconds) { fetches_.add(bytes, seconds); }

  // The time that a task stands at, the least first; in the order of arrival all are equal.
  double place_s(ServiceOrder order, const TaskFeatures& task, double arrival_s) const {
    if (order == ServiceOrder::kArrival) return 0;
    return task.units * operations_of(task) /
               or_nominal(operations_, kNominalRates.operations_per_s) +
           kAging * arrival_s;
  }
  // What is added as long as so many bytes of its data are in no node's fast memory.
  double cold_s(ServiceOrder order, uint64_t cold_bytes) const {
    if (order == ServiceOrder::kArrival) return 0;
    return kCold * static_cast<double>(cold_bytes) /
           or_nominal(fetches_, kNominalRates.fetch_bytes_per_s);
  }

 private:
  static constexpr double kAging = 0.1;
  static constexpr double kCold = 3;      // it is brought, something is evicted, and brought back
  static constexpr double kKept = 0.998;  // nodes may be unlike: some 500 pieces of work count

  static double or_nominal(const WorkRate& rate, double nominal) {
    return rate.per_s() > 0 ? rate.per_s() : nominal;
  }

  WorkRate operations_{kKept};
  WorkRate fetches_{kKept};
};

}  // namespace tierpilot
