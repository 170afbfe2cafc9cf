// Nodes that are cleared and filled anew, where that gives no less of their units: "Record Breaking
// Optimization Results Using the Ruin and Recreate Principle" (Schrimpf et al., Journal of
// Computational Physics 159, 2000). Some places that would do are passed over, as in "Slack
// Induction by String Removals for Vehicle Routing Problems" (Christiaens and Vanden Berghe,
// Transportation Science 54, 2020).
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "policies/sharing/cluster.h"

namespace tierpilot::sharing {

// Requests go by the number of their kind.
class Refilling {
 public:
  // `left`: how many of each kind there are, none of which is placed yet.
  Refilling(std::vector<Node> idle, std::vector<Request> kinds, std::vector<uint32_t> left);

  void place(uint32_t kind, const Placement& placement);
  // A few nodes are filled anew; what gives no less stays.
  void step(SeededRandom& random);

  struct Held {
    uint32_t kind = 0;
    std::vector<uint32_t> units;
  };
  const std::vector<Held>& held(uint32_t node) const { return nodes_[node].held; }
  uint64_t given_milli() const { return given_milli_; }

 private:
  struct Filled {
    Node free;
    std::vector<Held> held;
  };
  struct Worth {
    uint64_t milli = 0, requests = 0;  // units count first
    auto operator<=>(const Worth&) const = default;
  };
  std::vector<uint32_t> few_nodes(SeededRandom& random) const;
  std::vector<uint32_t> order(SeededRandom& random) const;
  void fill(std::vector<Filled>& nodes, SeededRandom& random);
  bool put(std::vector<Filled>& nodes, uint32_t kind, SeededRandom& random);
  Worth worth(const std::vector<Filled>& nodes) const;

  std::vector<Node> idle_;
  std::vector<Request> kinds_;
  std::vector<uint32_t> left_;
  std::vector<Filled> nodes_;
  std::vector<uint32_t> with_units_;
  uint64_t given_milli_ = 0;
};

}  // namespace tierpilot::sharing
