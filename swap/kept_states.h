// Storages that a program keeps from one step to the next (states of an optimiser): in which order
// they are asked for, and whether they leave in between.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "swap/slot_table.h"

namespace tierpilot::swap {

class KeptStates {
 public:
  // By the name of the policy: those that let everything or nothing leave do so here, too.
  explicit KeptStates(const std::string& rule);

  // Whether what is kept from now on leaves.
  bool leave() const { return leave_; }
  void kept(Id id, Slot& slot);
  // It is asked for or dropped.
  void ended(const Slot& slot);
  // In the order in which they were kept, which is that in which they will be asked for.
  const std::map<uint64_t, Id>& order() const { return order_; }

  // A step is over. They leave where it did not fit, and stay where all of them had fitted beside
  // its most; `settled`: nothing was tried in it.
  void step_ended(int64_t peak_bytes, int64_t target_bytes, bool fits, bool settled);

  int64_t kept_count() const { return static_cast<int64_t>(next_); }
  int64_t bytes() const { return bytes_; }

 private:
  const bool fixed_;
  bool leave_;
  uint64_t next_ = 0;
  int64_t bytes_ = 0;
  std::map<uint64_t, Id> order_;  // by Slot::save
};

}  // namespace tierpilot::swap
