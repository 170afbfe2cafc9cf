// Follows a plan, and mends it where the plan was wrong: what is of no more use leaves first, then
// what the plan wants away, then what is cheap for the time it can stay away. Nothing leaves before
// its room is needed, but for copies to the host, which take their time.
#pragma once

#include <queue>
#include <vector>

#include "policies/swap/link/returns.h"
#include "policies/swap/machine/machine.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

// Strictly: nothing leaves that the plan keeps and the program will ask for, but for what came back
// too early and has a copy still.
enum class Following : uint8_t { kMending, kStrict };

class PlannedEviction : public Manager {
 public:
  PlannedEviction(const Graph& graph, const Timetable& timetable, const Plan& plan,
                  const Link& link, Following following = Following::kMending);

  bool make_room(Machine& machine, int64_t bytes) override;
  void arrived(Machine& machine, StorageId storage) override { note(machine, storage); }
  void unlocked(Machine& machine, StorageId storage) override { note(machine, storage); }
  void before(Machine& machine, OperatorId op) override;

 private:
  enum Rank : uint8_t { kUseless, kPlanned, kOther, kRanks };
  struct Candidate {
    double score;
    StorageId storage;
    uint32_t version;
    bool operator<(const Candidate& other) const {  // the queue's top has the least score
      return score != other.score ? score > other.score : storage > other.storage;
    }
  };

  void note(Machine& machine, StorageId storage);
  StorageId pop(const Machine& machine, Rank rank);
  bool still_valid(const Machine& machine, const Candidate& candidate) const;
  bool room_for(Machine& machine, int64_t bytes);

  const Timetable& timetable_;
  const Plan& plan_;
  Following following_;
  Position now_ = 0;
  std::priority_queue<Candidate> candidates_[kRanks];
  std::vector<uint32_t> versions_;
  Returns returns_;
};

}  // namespace tierpilot::swap
