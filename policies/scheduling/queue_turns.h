// In which order the tasks of a queue are tried: by their turns, which are their places
// (service_order.h) and, where no node with room has their data in fast memory, later than that.
// One that waits for something else than room lets others pass, and so does one that is kept back.
#pragma once

#include <concepts>
#include <cstddef>
#include <optional>
#include <vector>

#include "policies/scheduling/service_order.h"

namespace tierpilot {

// What a look at the queue goes through, in the order of places.
//   place  of the next task; nothing: none is left
//   look   passes that task: how much later than its place its turn is, in seconds; nothing: it has
//          none now
template <class Queue>
concept QueueInOrder = requires(Queue queue) {
  { queue.place() } -> std::same_as<std::optional<QueuePlace>>;
  { queue.look() } -> std::same_as<std::optional<double>>;
};

// One look at a queue.
class QueueTurns {
 public:
  // Tasks that are looked at, beside those that are kept back.
  static constexpr size_t kMostLookedAt = 256;

  // `kept_back`: so many tasks are. `known`: so many at the head of the queue, which `next` does
  // not see, are known to have no turn.
  void begin(size_t kept_back, size_t known = 0) {
    turns_.clear();
    most_ = kMostLookedAt + kept_back;
    looked_at_ = known;
    taken_ = false;
    cut_off_.reset();
  }
  // No task that was seen has its turn still to come.
  bool empty() const { return turns_.empty(); }

  struct Turn {
    double at_s = 0;
    QueuePlace place;
  };
  // The task whose turn is first of those that had none in this look; of equal ones the one that
  // stands first.
  template <QueueInOrder Queue>
  std::optional<Turn> next(Queue& queue) {
    if (taken_) drop_first();
    // Nobody's turn is before its place.
    while (const auto place = queue.place()) {
      if (!turns_.empty() && place->first >= turns_[first_].at_s) break;
      if (looked_at_ >= most_) {
        cut_off_ = place;
        break;
      }
      ++looked_at_;
      if (const std::optional<double> later_s = queue.look())
        add({place->first + *later_s, *place});
    }
    if (turns_.empty()) return std::nullopt;
    taken_ = true;  // dropped when the next one is asked for, which mostly nobody does
    return turns_[first_];
  }
  // From this place on nobody was looked at, as there were too many.
  const std::optional<QueuePlace>& cut_off() const { return cut_off_; }

 private:
  void add(const Turn& turn) {
    if (turns_.empty() || turn.at_s < turns_[first_].at_s) first_ = turns_.size();
    turns_.push_back(turn);
  }
  void drop_first() {
    taken_ = false;
    turns_.erase(turns_.begin() + static_cast<ptrdiff_t>(first_));
    first_ = 0;
    for (size_t i = 1; i < turns_.size(); ++i)
      if (turns_[i].at_s < turns_[first_].at_s) first_ = i;
  }

  std::vector<Turn> turns_;  // by place
  size_t first_ = 0;
  bool taken_ = false;  // the first one
  size_t most_ = kMostLookedAt;
  size_t looked_at_ = 0;
  std::optional<QueuePlace> cut_off_;
};

}  // namespace tierpilot
