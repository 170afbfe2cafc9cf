// The step that runs: what it has saved, in order, what of that is still to be asked for, and how
// each storage fared.
#pragma once

#include <vector>

#include "policies/swap/learning/step_learner.h"
#include "swap/slot_table.h"
#include "swap/statistics.h"

namespace tierpilot::swap {

class RunningStep {
 public:
  // Whether this step saved it.
  bool has(const Slot& slot) const { return slot.step == number_; }
  const std::vector<Id>& saves() const { return saves_; }
  // Whether all that it saved was asked for or dropped.
  bool spent() const { return unspent_ == 0; }
  // Whether the next step begins with this save. `seen` is this step so far.
  bool over_before(const SavedStorage& next, const ObservedStep& seen) const;

  void save(Id id, Slot& slot, const SavedStorage& storage, int64_t now_ns);
  // A save in a backward pass, which is none of the step's.
  void save_late() { ++late_; }
  // It is asked for or dropped: whether for the first time, in the step that saved it.
  bool spend(Slot& slot);
  // It is asked for, for the first time.
  void use(const Slot& slot, int64_t now_ns);
  // The save that the step's next call of this is about, from the oldest on; 0: no more.
  Id next_oldest() { return oldest_ < saves_.size() ? saves_[oldest_++] : 0; }
  // How the storage fares; nullptr: its step is over.
  Life* life_of(const Slot& slot);

  void segment_began(uint64_t place, bool again, int64_t now_ns);
  void segment_ended(int64_t now_ns);

  // Another step begins. How all storages of this one fared.
  StepLife end(const StepEnd& seen);

 private:
  uint64_t number_ = 1, first_place_ = 0;
  std::vector<Id> saves_;
  size_t unspent_ = 0, oldest_ = 0;
  size_t late_ = 0;  // late saves since the last use
  StepLife life_;
};

}  // namespace tierpilot::swap
