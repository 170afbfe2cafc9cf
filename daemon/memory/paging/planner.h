// What the policies share while a plan is made: chunks and tiers as they will be when the moves so
// far are done. Internal.
#pragma once

#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "daemon/memory/paging/plan.h"

namespace tierpilot {

// Chunks that may leave a tier, coldest first. Those that have left are taken off as they are met.
struct Evictable {
  std::list<size_t> all;
  std::map<size_t, std::list<size_t>> of_group;
};

class Planner {
 public:
  // `input` has been checked and outlives it.
  explicit Planner(const PagingInput& input);

  const PagingInput& input() const { return input_; }
  const std::vector<PagingChunk>& chunks() const { return units_; }
  bool has_moved(size_t chunk) const { return moved_[chunk]; }
  // Chunks of groups with `policy` whose heat is known.
  std::vector<size_t> by_heat(PagingPolicy policy, bool hottest_first) const;
  // Those of them that have pages in `tier`.
  Evictable evictable(PagingPolicy policy, size_t tier) const;
  // Accesses per second that were seen on the whole chunk.
  double heat_of(size_t chunk) const;

  uint64_t bytes_below(size_t chunk, size_t tier) const;     // in slower tiers than `tier`
  uint64_t bytes_above(size_t chunk, size_t tier) const;     // in faster ones
  uint64_t room_in(size_t tier) const;                       // above the reserve
  uint64_t room_in_budget(size_t group, size_t tier) const;  // whatever room the tier has
  uint64_t group_excess(size_t group) const;                 // above its budget
  uint64_t move_budget() const { return move_budget_; }

  // Moves the chunk up into `tier`, after chunks of `evictable` that are colder by the hysteresis
  // where room is wanting. False, with at most some of those moved down, when that is not enough,
  // or when part of the chunk is in a faster tier: it would go down with the rest. Looks no further
  // once many of the coldest find no room below: else a full machine would take quadratic time.
  bool promote(size_t chunk, size_t tier, Evictable& evictable, MoveReason reason);
  // Moves the chunk from `tier` into the next slower one that has room and is not faster than any
  // part of it. False when none has.
  bool demote(size_t chunk, size_t tier, MoveReason reason);
  // Whatever it takes: the caller has seen to room and budget.
  void move(size_t chunk, size_t tier, MoveReason reason);

  void note(std::string what) { plan_.notes.push_back(std::move(what)); }
  void set_balance(const BalanceState& state) { plan_.balance = state; }
  MovePlan take() { return std::move(plan_); }

 private:
  struct Wanted;
  // What must go down before `chunk` comes up; nothing when that cannot be done.
  std::optional<std::vector<size_t>> find_victims(size_t chunk, size_t tier,
                                                  Evictable& evictable) const;
  // Until there is as much of `room` as is needed.
  void add_victims(Wanted& wanted, std::list<size_t>& coldest_first, uint64_t Wanted::*room) const;
  // Where demote() would move it; nothing when no tier has room.
  std::optional<size_t> tier_below(size_t chunk, size_t tier) const;
  bool outranks(const PagingChunk& hot, const PagingChunk& cold) const;

  const PagingInput& input_;
  std::vector<PagingChunk> units_;
  std::vector<bool> moved_;
  std::vector<int64_t> free_bytes_;
  std::vector<uint64_t> group_fast_bytes_;
  uint64_t move_budget_;
  MovePlan plan_;
};

void plan_static(Planner& planner);
void plan_heat(Planner& planner);
void plan_balance(Planner& planner);
// What groups of `policy` hold of the fastest tier above their budgets goes down.
void plan_excess(Planner& planner, PagingPolicy policy);

}  // namespace tierpilot
