// The least cut between a source and a sink, and again when capacities have grown (Dinic, Algorithm
// for Solution of a Problem of Maximum Flow in a Network with Power Estimation, 1970).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace tierpilot::swap {

class MinCut {
 public:
  using Node = uint32_t;
  using Edge = uint32_t;
  static constexpr int64_t kUncut = std::numeric_limits<int64_t>::max() / 4;
  static constexpr Node kSource = 0, kSink = 1;

  explicit MinCut(size_t nodes) : first_(nodes + 2, kEnd), level_(nodes + 2), next_(nodes + 2) {}

  // Nodes are numbered from 2 on.
  Edge add(Node from, Node to, int64_t capacity);
  void grow(Edge edge, int64_t by) { edges_[edge].left += by; }
  // What the least cut cuts. Afterwards on_source_side() tells the cut with the fewest nodes there.
  int64_t solve();
  bool on_source_side(Node node) const { return level_[node] != kUnseen; }

 private:
  static constexpr uint32_t kEnd = std::numeric_limits<uint32_t>::max();
  static constexpr uint32_t kUnseen = kEnd;
  struct Half {
    Node to;
    Edge next;  // of the same node's
    int64_t left;
  };

  bool reach();
  int64_t push_one();
  void add_half(Node from, Node to, int64_t capacity);

  std::vector<Half> edges_;  // an edge and, after it, the way back
  std::vector<Edge> first_;
  std::vector<uint32_t> level_;
  std::vector<Edge> next_;
  std::vector<Node> queue_;
  std::vector<Edge> path_;
  int64_t flow_ = 0;
};

}  // namespace tierpilot::swap
