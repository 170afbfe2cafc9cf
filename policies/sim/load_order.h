// Nodes by load, then by number; kept in order as loads change.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace tierpilot::sim {

class LoadOrder {
 public:
  void resize(size_t nodes) { places_.resize(nodes, order_.end()); }
  void set(uint32_t node, double load) {
    auto& place = places_[node];
    if (place == order_.end()) {
      place = order_.emplace(load, node).first;
    } else if (place->first != load) {
      auto handle = order_.extract(place);  // moves without allocating
      handle.value().first = load;
      place = order_.insert(std::move(handle)).position;
    }
  }
  void remove(uint32_t node) {
    if (places_[node] != order_.end()) order_.erase(places_[node]);
    places_[node] = order_.end();
  }
  // Pairs of load and node, least load first.
  auto begin() const { return order_.begin(); }
  auto end() const { return order_.end(); }

 private:
  using Order = std::set<std::pair<double, uint32_t>>;
  Order order_;
  std::vector<Order::iterator> places_;
};

}  // namespace tierpilot::sim
