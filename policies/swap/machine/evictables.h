// The storages that may leave the device, in the order in which they became so.
#pragma once

#include <vector>

#include "policies/swap/graph.h"

namespace tierpilot::swap {

class Evictables {
 public:
  explicit Evictables(size_t storages) : nodes_(storages + 1) {}

  bool contains(StorageId storage) const { return node(storage).listed; }
  // kNone ends the order.
  StorageId first() const { return nodes_.front().next; }
  StorageId next(StorageId storage) const { return node(storage).next; }

  // At the end, where it is not among them already.
  void add(StorageId storage) {
    if (contains(storage)) return;
    const auto last = nodes_.front().previous;
    node(storage) = {.previous = last, .next = kNone, .listed = true};
    node(last).next = storage;
    nodes_.front().previous = storage;
  }
  void remove(StorageId storage) {
    auto& removed = node(storage);
    if (!removed.listed) return;
    removed.listed = false;
    node(removed.previous).next = removed.next;
    node(removed.next).previous = removed.previous;
  }

 private:
  struct Node {
    StorageId previous = kNone, next = kNone;
    bool listed = false;
  };
  // kNone + 1 is 0: the anchor of the ring.
  Node& node(StorageId storage) { return nodes_[StorageId{storage + 1}]; }
  const Node& node(StorageId storage) const { return nodes_[StorageId{storage + 1}]; }

  std::vector<Node> nodes_;
};

}  // namespace tierpilot::swap
