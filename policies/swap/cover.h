// Chooses what is away when, so that a step fits: a greedy cover of the bytes that are too many at
// each position by gaps between uses, cheapest per covered byte and position first (Chvatal, A
// Greedy Heuristic for the Set-Covering Problem, 1979). Recomputing what a gap leaves out needs its
// ancestors at that position: their gaps are split there, so that costs are charged once and to
// whom they belong.
#pragma once

#include <queue>
#include <span>
#include <vector>

#include "policies/swap/link.h"
#include "policies/swap/plan.h"

namespace tierpilot::swap {

struct CoverSettings {
  int64_t budget_bytes = 0;
  // What recomputing an ancestor costs that would be recomputed later anyway: 0 to 1.
  double shared_cost = 0.5;
  // The price of the link's time against compute time.
  double link_price = 0.1;
  Link link{};
  bool recompute = true;  // as in Limits
  // Factors on the cost of each storage's absence, for searches around a plan; empty: 1.
  std::span<const float> bias{};
};

class Cover {
 public:
  Cover(const Graph& graph, const Timetable& timetable, const CoverSettings& settings);
  Plan plan();

 private:
  struct Gap {
    Position from, to;
    Action action = Action::kKeep;
  };
  struct Candidate {
    double ratio;
    StorageId storage;
    Position from, to;
    bool operator<(const Candidate& other) const;
  };
  struct Price {
    double cost;
    Action action;
  };

  void count_deficit();
  void offer(StorageId storage, const Gap& gap);
  Gap* find(StorageId storage, Position at);
  double covered(StorageId storage, Position from, Position to) const;
  Price price(StorageId storage, Position to);
  // The time to have at `to` again what its operator needs of the storage; ancestors_ then holds
  // the storages that have to be there.
  double recompute_ns(StorageId storage, Position to);
  void need(TensorId tensor, Position at, double weight);
  void take(StorageId storage, Gap& gap, Action action);
  void split(StorageId storage, Position at);
  // Keeps again what later choices made unnecessary, dearest first.
  void prune();
  void add(Position from, Position to, int64_t bytes);
  bool satisfied();

  const Graph& graph_;
  const Timetable& timetable_;
  CoverSettings settings_;
  std::vector<int64_t> deficit_;  // bytes over the budget by position
  std::vector<std::vector<Gap>> gaps_;
  std::priority_queue<Candidate> queue_;
  Position worst_ = 0;  // no position before it is over the budget

  struct Need {
    TensorId tensor;
    double weight;
  };
  std::vector<Need> walk_;
  std::vector<StorageId> ancestors_;
  std::vector<uint32_t> seen_operator_, seen_storage_;
  uint32_t round_ = 0;
};

}  // namespace tierpilot::swap
