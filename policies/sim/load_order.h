// Nodes in sets of equal load, least load first; kept as loads change. Loads are ratios of small
// numbers, so there are few different ones.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "policies/sim/node_set.h"

namespace tierpilot::sim {

class LoadOrder {
 public:
  explicit LoadOrder(size_t nodes) : places_(nodes, levels_.end()) {}

  void set(uint32_t node, double load) {
    const Place place = places_[node];
    if (place != levels_.end() && place->first == load) return;
    remove(node);
    places_[node] = level(load);
    places_[node]->second.set(node, true);
  }
  // Of a node that is there.
  double load(uint32_t node) const { return places_[node]->first; }
  void remove(uint32_t node) {
    const Place place = std::exchange(places_[node], levels_.end());
    if (place == levels_.end()) return;
    place->second.set(node, false);
    if (place->second.size() == 0) spare_.push_back(levels_.extract(place));
  }
  // Fills `chosen` up to `most` with those of `from` that have the least load, then the lowest
  // numbers.
  void choose(const NodeSet& from, size_t most, NodeSet& chosen) const {
    for (auto level = levels_.begin(); level != levels_.end() && chosen.size() < most; ++level)
      chosen.add_common(level->second, from, most);
  }

 private:
  using Levels = std::map<double, NodeSet>;
  using Place = Levels::iterator;

  Place level(double load) {
    const Place at = levels_.lower_bound(load);
    if (at != levels_.end() && at->first == load) return at;
    if (spare_.empty()) return levels_.emplace_hint(at, load, NodeSet(places_.size()));
    auto handle = std::move(spare_.back());  // an empty one keeps its memory
    spare_.pop_back();
    handle.key() = load;
    return levels_.insert(at, std::move(handle));
  }

  Levels levels_;
  std::vector<Levels::node_type> spare_;
  std::vector<Place> places_;  // by node; end() of one that is not there
};

}  // namespace tierpilot::sim
