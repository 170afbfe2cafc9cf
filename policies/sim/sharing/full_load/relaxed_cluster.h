// Full load as a linear program: kinds of requests on kinds of nodes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "policies/sharing/cluster.h"
#include "policies/sim/sharing/full_load/dual_feasible.h"

namespace tierpilot::sharing {

// Requests may be cut in parts, and nodes of a kind are one: rows are what they have together of
// cores, of memory, and of units as each function counts them. Nodes without units are none. Nodes
// of more than 64 kinds are one kind a model.
class RelaxedCluster {
 public:
  RelaxedCluster(const std::vector<Node>& nodes, const std::vector<Request>& requests);

  size_t rows() const { return nodes_.size() * (kHostRows + functions_.size()); }
  size_t request_kinds() const { return requests_.size(); }
  // Units are counted by one more function. Prices for its rows follow each kind's others.
  void add_function(const DualFeasible& function, std::vector<double>& prices);

  // Where all requests of a kind go, or kNowhere.
  using Choice = std::vector<uint8_t>;
  static constexpr uint8_t kNowhere = 255;
  struct Priced {
    double bound = 0;  // thousandths of units; no choice, mixed or not, is worth more
    Choice choice;     // the best at these prices
  };
  // `prices` of all that each row has, none below 0. Why it is a bound: what fits takes no more of
  // a row than it has, so that it is worth at most all prices and what each request is worth above
  // what it takes at them; and none adds more than on the kind of nodes where that is greatest.
  Priced priced(const std::vector<double>& prices) const;

  double worth(const Choice& choice) const;               // thousandths of units
  std::vector<double> taken(const Choice& choice) const;  // parts of each row
  // Adds what a part of the choice gives, by kind of node.
  void add_given(const Choice& choice, double part, std::vector<SharesGiven>& given) const;
  size_t node_kinds() const { return nodes_.size(); }
  double units(size_t node_kind) const { return nodes_[node_kind].has.units; }

 private:
  static constexpr size_t kHostRows = 2;
  struct NodeKind {
    Node largest;
    struct {
      double cpu_milli = 0, memory_bytes = 0, units = 0;
    } has;  // all together
  };
  struct RequestKind {
    Request request;
    double count = 0;
    uint64_t fits = 0;  // bit per kind of nodes
  };
  template <class Key>
  static std::vector<NodeKind> kinds_by(const std::vector<Node>& nodes, Key key);
  static std::vector<NodeKind> kinds_of(const std::vector<Node>& nodes);
  std::vector<RequestKind> kinds_of(const std::vector<Request>& requests) const;

  std::vector<NodeKind> nodes_;
  std::vector<RequestKind> requests_;
  std::vector<uint32_t> shares_;  // that requests ask for
  std::vector<DualFeasible> functions_{as_asked()};
};

}  // namespace tierpilot::sharing
