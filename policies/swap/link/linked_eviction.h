// Scores decide what is dropped, and a plan what leaves over the link before it comes to that:
// copies to the host begin at a storage's last use, and it is back for the next one if there is
// room.
#pragma once

#include "policies/swap/link/returns.h"
#include "policies/swap/scores.h"

namespace tierpilot::swap {

class LinkedEviction : public Manager {
 public:
  // `plan` has what is swapped; what it recomputes is up to the score.
  LinkedEviction(const Graph& graph, const Timetable& timetable, const Plan& plan,
                 const Score& score, const Link& link, uint64_t seed, const Neighbourhood& near);
  void set_bias(const std::vector<float>& bias) { scores_.set_bias(bias); }

  bool make_room(Machine& machine, int64_t bytes) override;
  void left(Machine& machine, StorageId storage) override { scores_.left(machine, storage); }
  void arrived(Machine& machine, StorageId storage) override { scores_.arrived(machine, storage); }
  void unlocked(Machine& machine, StorageId storage) override;
  void before(Machine& machine, OperatorId op) override;
  void after(Machine& machine, OperatorId op) override { scores_.after(machine, op); }

 private:
  bool room_for(Machine& machine, int64_t bytes);

  const Timetable& timetable_;
  const Plan& plan_;
  ScoredEviction scores_;
  Returns returns_;
  Position now_ = 0;
};

}  // namespace tierpilot::swap
