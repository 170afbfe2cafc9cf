// One point of a step: what is alive there, what of it may be away, and what is cheapest to make
// again afterwards, with all that has to be made for it.
//
// A storage that is alive while an operator runs for the first time is there afterwards because it
// was available (it stayed, or the host had a copy) or because its operator ran again, and then so
// did those of the views into it that the program reads later; and whatever
// runs again reads arguments that were available or are made again themselves. To price a byte
// that is available turns the choice into a least cut (Picard, Maximal Closure of a Graph, 1976).
#pragma once

#include <span>
#include <vector>

#include "policies/swap/bound/min_cut.h"
#include "policies/swap/machine/limits.h"
#include "policies/swap/timetable.h"

namespace tierpilot::swap {

// In larger steps cuts take too long.
inline constexpr size_t kMostCutOperators = 20'000;

class Peak {
 public:
  // `factors` on the time of each operator are for searches; empty: 1.
  Peak(const Graph& graph, const Timetable& timetable, Position at,
       std::span<const float> factors = {});

  // The cheapest choice at a price, in ns a byte; prices have to rise from call to call.
  // Returns what it costs, with the price for all that is available.
  int64_t solve(double price);
  // Of the last choice. Not alive ones may be among both.
  bool available(StorageId storage) const;
  bool made_again(StorageId storage) const;
  int64_t available_bytes() const;
  int64_t made_again_ns() const;

  Position at() const { return at_; }
  // What stays whatever is chosen: constants, and what the operator uses itself.
  int64_t fixed_bytes() const { return fixed_bytes_; }
  // Prices between which choices differ.
  double least_price() const { return least_price_; }
  double most_price() const { return most_price_; }

 private:
  MinCut::Node node_of(StorageId storage) const { return 2 + storage; }
  // On the source's side: not available.
  MinCut::Node node_of_absence(StorageId storage) const { return 2 + storages_ + storage; }
  MinCut::Node node_of_operator(OperatorId op) const { return 2 + 2 * storages_ + op; }
  void need_views(const Timetable& timetable);

  const Graph& graph_;
  Position at_;
  uint32_t storages_;
  std::vector<char> choice_;        // by storage: made before and not used here
  std::vector<StorageId> choices_;  // these
  std::vector<char> makes_;  // by operator: makes choices, or views into them that are needed
  std::vector<OperatorId> makers_;  // these
  std::vector<MinCut::Edge> prices_;
  std::vector<int64_t> priced_;
  MinCut cut_;
  int64_t fixed_bytes_ = 0;
  double least_price_ = 0, most_price_ = 0;
};

// Bytes that the link can have carried out by `at` and bring back after it, if what is made again
// after it takes `again_ns`. To wait for more before it costs dearest_price(), in ns a byte.
double carried_bytes(const Timetable& timetable, const Link& link, Position at, double again_ns);
double dearest_price(const Link& link);

// Prices in ns a byte, rising by equal factors.
std::vector<double> price_ladder(double least, double most, size_t rungs);

}  // namespace tierpilot::swap
