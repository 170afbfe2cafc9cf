// What the nodes hold of one task's data; apart from their states, which fill the caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "policies/sim/data/replica_store.h"
#include "policies/sim/model/workload.h"

namespace tierpilot::sim {

class DataAtHand {
 public:
  struct Bytes {
    uint64_t fast = 0, slow = 0;
    bool listed = false;  // among the holders
  };

  explicit DataAtHand(size_t nodes) : at_(nodes) {}
  // Adds what the nodes have of the datasets; is_up(node) says which of them count.
  template <class Uses, class IsUp>
  void find(const ReplicaStore& store, Uses uses, IsUp is_up) {
    for (const DatasetUse& use : uses) {
      const uint64_t bytes = store.datasets().bytes(use.dataset);
      for (const auto& holder : store.datasets().holders(use.dataset)) {
        if (!is_up(holder.node)) continue;
        Bytes& here = at_[holder.node];
        (holder.fast ? here.fast : here.slow) += bytes;
        if (!std::exchange(here.listed, true)) holders_.push_back(holder.node);
      }
    }
  }
  void clear() {
    for (const uint32_t node : holders_) at_[node] = {};
    holders_.clear();
  }
  // Nodes that have some.
  const std::vector<uint32_t>& holders() const { return holders_; }
  const Bytes& at(uint32_t node) const { return at_[node]; }

 private:
  std::vector<Bytes> at_;  // by node
  std::vector<uint32_t> holders_;
};

}  // namespace tierpilot::sim
