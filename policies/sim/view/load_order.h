// Nodes by speed class, in sets of equal load, least load first; kept as these change. Loads are
// ratios of small numbers, so there are few different ones.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "policies/sim/view/node_set.h"

namespace tierpilot::sim {

class LoadOrder {
 public:
  explicit LoadOrder(size_t nodes) : places_(nodes, levels_.end()) {}

  void set(uint32_t node, int speed_class, double load) {
    const Key key{speed_class, load};
    const Place place = places_[node];
    if (place != levels_.end() && place->first == key) return;
    remove(node);
    places_[node] = level(key);
    places_[node]->second.set(node, true);
  }
  // Of a node that is there.
  double load(uint32_t node) const { return places_[node]->first.load; }
  void remove(uint32_t node) {
    const Place place = std::exchange(places_[node], levels_.end());
    if (place == levels_.end()) return;
    place->second.set(node, false);
    if (place->second.size() == 0) spare_.push_back(levels_.extract(place));
  }
  void clear() {
    for (uint32_t node = 0; node < places_.size(); ++node) remove(node);
  }
  // Nodes whose units are about as fast.
  struct Class;
  // The fastest first.
  template <class Classes>
  void list_classes(Classes& classes) const {
    for (auto level = levels_.begin(); level != levels_.end(); level = classes.back().end)
      classes.push_back({level, next_class(level)});
  }
  // Adds nodes of the class that are among `from` to `chosen` until that has `most`: those that
  // have the least load, then the lowest numbers.
  static void add(const Class& alike, const NodeSet& from, size_t most, NodeSet& chosen);

 private:
  struct Key {
    int speed_class = 0;
    double load = 0;
    bool operator==(const Key&) const = default;
    bool operator<(const Key& other) const {
      return speed_class != other.speed_class ? speed_class > other.speed_class : load < other.load;
    }
  };
  using Levels = std::map<Key, NodeSet>;
  using Place = Levels::iterator;
  using Seen = Levels::const_iterator;

  Seen next_class(Seen level) const {
    return levels_.upper_bound({level->first.speed_class, HUGE_VAL});
  }

  Place level(const Key& key) {
    const Place at = levels_.lower_bound(key);
    if (at != levels_.end() && at->first == key) return at;
    if (spare_.empty()) return levels_.emplace_hint(at, key, NodeSet(places_.size()));
    auto handle = std::move(spare_.back());  // an empty one keeps its memory
    spare_.pop_back();
    handle.key() = key;
    return levels_.insert(at, std::move(handle));
  }

  Levels levels_;
  std::vector<Levels::node_type> spare_;
  std::vector<Place> places_;  // by node; end() of one that is not there
};

struct LoadOrder::Class {
  Seen first, end;
};

inline void LoadOrder::add(const Class& alike, const NodeSet& from, size_t most, NodeSet& chosen) {
  for (Seen level = alike.first; level != alike.end && chosen.size() < most; ++level)
    chosen.add_common(level->second, from, most);
}

}  // namespace tierpilot::sim
