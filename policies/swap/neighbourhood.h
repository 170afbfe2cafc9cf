// What stands around a storage in the graph: whose recomputing it needs, and who needs it.
#pragma once

#include <algorithm>
#include <vector>

#include "policies/swap/machine/machine.h"

namespace tierpilot::swap {

struct Neighbour {
  StorageId storage;
  OperatorId since;  // the first operator that makes them neighbours
};
using Neighbours = std::vector<Neighbour>;

// Direct neighbours of each storage, without constants, without itself, each once.
class Neighbourhood {
 public:
  explicit Neighbourhood(const Graph& graph);
  const Neighbours& makers(StorageId storage) const { return makers_[storage]; }
  const Neighbours& users(StorageId storage) const { return users_[storage]; }

 private:
  std::vector<Neighbours> makers_, users_;
};

// e*: the summed cost of evicted ancestors (and descendants) that are reached through evicted
// storages only; kept until an eviction or a return in reach changes it.
class EvictedSums {
 public:
  EvictedSums(const Graph& graph, const Neighbourhood& near, bool descendants);
  // What is more than `most` may be less than the whole sum.
  int64_t around(const Machine& machine, StorageId storage, double most);
  // After `storage` has left or come back.
  void changed(const Machine& machine, StorageId storage);

 private:
  using Side = const Neighbours& (Neighbourhood::*)(StorageId) const;
  int64_t sum(const Machine& machine, StorageId storage, Side side, double most);
  void forget(const Machine& machine, StorageId storage, Side side);
  bool fresh(StorageId storage);

  const Graph& graph_;
  const Neighbourhood& near_;
  bool descendants_;
  struct Known {
    int64_t sum_ns = 0;
    bool whole = false;  // else it is at least so much
  };
  std::vector<Known> known_;
  std::vector<uint32_t> seen_;
  std::vector<StorageId> walk_;
  uint32_t round_ = 0;
};

// Classes of evicted storages that touch, with the sum of their costs: union-find, so a class is
// never split again when a member comes back.
class EvictedClasses {
 public:
  EvictedClasses(const Graph& graph, const Neighbourhood& near);
  // Over the distinct classes beside `storage`.
  int64_t around(const Machine& machine, StorageId storage);
  // Not more than that, from when it was asked for last.
  int64_t least_around(StorageId storage) const {
    const auto& [sum_ns, dropped_ns] = known_[storage];
    return std::max<int64_t>(0, sum_ns - (dropped_ns_ - dropped_ns));
  }
  void left(const Machine& machine, StorageId storage);
  void arrived(const Machine& machine, StorageId storage);

 private:
  uint32_t root(uint32_t node);
  struct Known {
    int64_t sum_ns = 0;
    int64_t dropped_ns = 0;  // then
  };

  const Neighbourhood& near_;
  std::vector<uint32_t> node_;    // of each evicted storage, else kNone
  std::vector<uint32_t> parent_;  // a new node with each eviction
  std::vector<int64_t> cost_;     // at roots
  std::vector<uint32_t> seen_;    // by node: the last `around` that counted it
  std::vector<Known> known_;      // by storage
  int64_t dropped_ns_ = 0;        // all that classes have lost so far
  uint32_t round_ = 0;
};

}  // namespace tierpilot::swap
