#include "policies/sim/queue/waiting_tasks.h"

#include <algorithm>
#include <optional>

namespace tierpilot::sim {
namespace {

constexpr QueuePlace kLast{HUGE_VAL, UINT64_MAX};
static_assert(BlockedHead::kUnknown == kNone, "who misses no dataset waits for nothing");

}  // namespace

WaitingTasks::WaitingTasks(const ClusterSpec& cluster, const Workload& workload,
                           const ReplicaStore& store, const NodeStates& nodes,
                           const DatasetWriters& writers, const KeptBackTasks& kept_back,
                           QueuePlaces& places)
    : order_(cluster.coordinator.service_order),
      workload_(workload),
      store_(store),
      nodes_(nodes),
      writers_(writers),
      kept_back_(kept_back),
      places_(places) {}

bool WaitingTasks::insert(uint32_t task) {
  const Task& what = workload_.tasks[task];
  const TaskFeatures features{.operations = what.told_operations(), .units = what.units};
  places_.set(task,
              nodes_.pace().place_s(order_, features, static_cast<double>(what.arrival_ns) * 1e-9));
  const QueuePlace place = places_.of(task);
  if (!head_.insert(place)) queue_.insert(place);
  return place < looked_until_ || availability_seen_ != store_.datasets().availability();
}

// The queue as policies/scheduling/queue_turns.h wants it.
class WaitingTasks::Look {
 public:
  explicit Look(WaitingTasks& all) : all_(all), at_(all.head_.known()) {}

  std::optional<QueuePlace> place() {
    if (all_.turns_.empty()) all_.head_.set_known(at_);
    if (at_ == all_.head_.size()) {
      if (all_.queue_.empty()) return std::nullopt;
      all_.head_.append(all_.queue_.take_first());
    }
    return all_.head_[at_].place;
  }
  std::optional<double> look() {
    auto& entry = all_.head_[at_];
    const uint32_t task = entry.task();
    if (entry.waits_for == BlockedHead::kUnknown) {
      entry.waits_for = all_.waits_for(task);
      if (entry.waits_for < BlockedHead::kHeld && all_.writers_.lost(task)) {
        all_.head_.erase(at_);
        all_.given_up_.push_back(task);
        return std::nullopt;
      }
    }
    ++at_;
    if (entry.waits_for != BlockedHead::kUnknown) return std::nullopt;
    return all_.far_s(task);
  }

 private:
  WaitingTasks& all_;
  size_t at_;
};

uint32_t WaitingTasks::next() {
  given_up_.clear();
  if (availability_seen_ != store_.datasets().availability()) head_.all_changed();
  availability_seen_ = store_.datasets().availability();
  head_.cut(2 * (QueueTurns::kMostLookedAt + kept_back_.size()), queue_);
  Look queue(*this);
  turns_.begin(kept_back_.size(), head_.known());
  const auto turn = turns_.next(queue);
  // Who was given up makes room for others to be looked at.
  looked_until_ = given_up_.empty() ? turns_.cut_off().value_or(kLast) : kLast;
  if (!turn) return kNone;
  if (given_up_.empty()) looked_until_ = std::min(looked_until_, QueuePlace{turn->at_s, 0});
  next_ = head_.index_of(turn->place);
  return static_cast<uint32_t>(turn->place.second);
}

uint32_t WaitingTasks::waits_for(uint32_t task) const {
  return kept_back_.waits(task) ? BlockedHead::kHeld : writers_.missing(task);
}

double WaitingTasks::far_s(uint32_t task) const {
  uint64_t far_bytes = 0;
  for (const DatasetUse& use : workload_.uses_of(workload_.tasks[task])) {
    const auto& holders = store_.datasets().holders(use.dataset);
    const bool near = std::any_of(holders.begin(), holders.end(), [&](const auto& holder) {
      return holder.fast && nodes_.has_room(holder.node);
    });
    if (!near) far_bytes += store_.datasets().bytes(use.dataset);
  }
  return nodes_.pace().far_s(order_, far_bytes);
}

void WaitingTasks::freed(uint32_t dataset) {
  store_.datasets().lost(dataset) ? head_.all_changed() : head_.changed(dataset);
}

}  // namespace tierpilot::sim
