// Storages that a program keeps from one step to the next (states of an optimiser): in which order
// they are asked for, and which of them leave in between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "policies/swap/learning/state_room.h"
#include "swap/slot_table.h"

namespace tierpilot::swap {

class KeptStates {
 public:
  struct Kept {
    Id id = 0;
    bool stays = false;
  };

  // By the name of the policy: those that let everything or nothing leave do so here, too.
  explicit KeptStates(const std::string& rule);

  // Whether any may leave.
  bool leave() const { return room_bytes() < StateRoom::kAll; }
  // Whether this one leaves. Where not all have to, those that are asked for first stay.
  bool kept(Id id, Slot& slot);
  // It is asked for or dropped.
  void ended(const Slot& slot);
  // In the order in which they were kept, which is that in which they will be asked for.
  const std::map<uint64_t, Kept>& order() const { return order_; }

  // A step is over; `step`: but for the bytes of states, which are those of before where all stay,
  // as nobody has to tell of them then. Whether so much more or less stays from
  // now on that steps have to be planned anew.
  bool step_ended(StepWithStates step, const StateRoom::Foretell& foretell);

  // Of the bytes that stay, where that was decided: for the next run, and from another one.
  std::optional<int64_t> decided() const;
  void restore(int64_t room_bytes) { room_.restore(room_bytes); }

  int64_t bytes() const { return bytes_; }
  // Of those that are known, so many are to stay.
  int64_t to_stay_bytes() const { return std::min(room_bytes(), known_bytes_); }
  int64_t staying_bytes() const { return staying_bytes_; }

 private:
  int64_t room_bytes() const { return fixed_bytes_.value_or(room_.bytes()); }

  const std::optional<int64_t> fixed_bytes_;
  StateRoom room_;
  uint64_t next_ = 0, seen_ = 0;  // kept so far, and when the last step ended
  int64_t bytes_ = 0, staying_bytes_ = 0, known_bytes_ = 0;
  std::map<uint64_t, Kept> order_;  // by Slot::save
};

}  // namespace tierpilot::swap
