// Which of the tasks that wait for room is served next, in the coordinator as in the simulator.
//
// The one that should keep a unit for the shortest time (shortest expected processing time, which
// makes the mean response of one machine least: Rothkopf, Management Science 12(9), 1966; here time
// counts once for each unit that the task takes), but a task gains a fifth of the
// time that it has waited: it is overtaken by those only that come within five times the difference
// between its expected time and theirs. Tasks whose data no node with room has in its fast memory
// come later: to bring it in takes links and evicts what the next tasks need.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "policies/interface/values.h"
#include "policies/scheduling/work_rate.h"

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
  double place_s(ServiceOrder order, const TaskFeatures& task, double arrival_s) const;
  // What is added as long as no node with room has so many bytes of its data in fast memory.
  double far_s(ServiceOrder order, uint64_t far_bytes) const;

 private:
  static constexpr double kKept = 0.998;  // nodes may be unlike: some 500 pieces of work count

  WorkRate operations_{kKept};
  WorkRate fetches_{kKept};
};

}  // namespace tierpilot
