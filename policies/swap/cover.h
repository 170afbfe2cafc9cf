// Chooses what is away when, so that a step fits: a greedy cover of the bytes that are too many at
// each position by gaps between uses, cheapest per covered byte and position first (Chvatal, A
// Greedy Heuristic for the Set-Covering Problem, 1979). Recomputing what a gap leaves out needs its
// ancestors at that position: their gaps are split there, so that costs are charged once and to
// whom they belong. What is swapped has its times on the link: so long as there are any, a copy
// costs what the link's time is worth to others, and without it is waited for.
#pragma once

#include <optional>
#include <queue>
#include <span>
#include <vector>

#include "policies/swap/link/link_calendar.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

struct CoverSettings {
  int64_t budget_bytes = 0;
  // What recomputing an ancestor costs that would be recomputed later anyway: 0 to 1.
  double shared_cost = 0.5;
  // The price of the link's time against compute time.
  double link_price = 0.1;
  // Only while there is time on the link; whoever has none is waited for.
  bool on_time = false;
  Link link{};
  bool recompute = true;  // as in Limits
  // Costs are worked out as far as they matter, and all of long ones only at first: fast, and as
  // good on the whole.
  bool hurried = false;
  // What has to be made again may hold what the program has released until then: where little
  // memory is left beside large operators, nothing else gets through.
  bool hold = false;
  // Ratios of costs that are as good as equal: the larger, the faster.
  double tie = 1.0001;
  // Factors on the cost of each storage's absence, for searches around a plan; empty: 1.
  std::span<const float> bias{};
};

class Cover {
 public:
  Cover(const Graph& graph, const Timetable& timetable, const CoverSettings& settings);
  // Of what `begun` lets leave, and what has to beside it.
  Plan plan(const Plan& begun = {});
  // The timetable with the uses of what the plan holds beyond the program's own.
  Timetable timetable() const;
  // How often a gap was weighed: what planning took.
  size_t offers() const { return offers_; }

 private:
  // Small, as they are many and moved often.
  struct Gap {
    Position from, to;
    Action action = Action::kKeep;
    bool holds = false;     // what is released before `to` and needed there stays
    uint32_t trip = kNone;  // in trips_, of a swap that nobody waits for
  };
  // What a gap may become; its trip is not taken yet.
  struct Way {
    Gap gap;
    std::optional<RoundTrip> trip{};
  };
  struct Candidate {
    double ratio;
    StorageId storage;
    Position from, to;
    bool operator<(const Candidate& other) const;
  };
  struct Offer {
    double cost, ratio;  // ns, and that by covered byte and position
    Way way;
  };

  void count_deficit();
  void propose(StorageId storage, const Gap& gap);
  Gap* find(StorageId storage, Position at);
  // Bytes that are too many, where the gap is free of its own: from `first`, until `to`.
  double covered(StorageId storage, Position first, Position to) const;
  // The cheapest way for the gap; a cost of kCannot or more: there is none.
  // One whose ratio is above `stop` may say too little.
  Offer offer(StorageId storage, const Gap& gap, double stop);
  double cost(StorageId storage, const Gap& gap);
  double bias(StorageId storage) const;
  // The time to have at `to` again what its operator needs of the storage; ancestors_ then holds
  // the storages that have to be there.
  // More than `stop_ns` need not be all.
  // With `holds` what the program has released by then is there, and stands in dead_.
  double recompute_ns(StorageId storage, Position to, double stop_ns, bool holds = false);
  // Of a gap that holds: what it covers less what that takes.
  double covered_holding(StorageId storage, const Gap& gap) const;
  // It stays from its last use to there.
  void hold(StorageId storage, Position to);
  void need(TensorId tensor, Position at, double weight);
  void take(StorageId storage, Gap& gap, const Way& chosen);
  // The positions that are free of its bytes.
  Position away_from(const Gap& gap) const;
  Position back_at(const Gap& gap) const;
  void begin_with(const Plan& begun);
  void give_up(StorageId storage, Gap& gap);
  void split(StorageId storage, Position at);
  // Keeps again what later choices made unnecessary, dearest first.
  void prune();
  void add(Position from, Position to, int64_t bytes);
  bool satisfied();

  const Graph& graph_;
  const Timetable& timetable_;
  CoverSettings settings_;
  LinkCalendar calendar_;
  std::vector<int64_t> deficit_;  // bytes over the budget by position
  std::vector<std::vector<Gap>> gaps_;
  std::vector<RoundTrip> trips_;
  std::vector<uint32_t> recomputed_;  // by storage: its gaps after which it is recomputed
  std::priority_queue<Candidate> queue_;
  Position worst_ = 0;  // no position before it is over the budget

  struct Need {
    TensorId tensor;
    double weight;
  };
  std::vector<Need> walk_;
  size_t walked_ = 0;  // operators, by all walks
  size_t offers_ = 0;
  std::vector<StorageId> ancestors_, dead_;
  std::vector<std::vector<Position>> held_;  // by storage: later uses than the program's own
  std::vector<Position> last_use_;           // those included
  std::vector<uint32_t> seen_operator_, seen_storage_;
  uint32_t round_ = 0;
  bool walked_dead_ = false;  // by the last walk
};

}  // namespace tierpilot::swap
