#include "policies/swap/bound/min_cut.h"

#include <algorithm>

namespace tierpilot::swap {

void MinCut::add_half(Node from, Node to, int64_t capacity) {
  edges_.push_back({to, first_[from], capacity});
  first_[from] = static_cast<Edge>(edges_.size() - 1);
}

MinCut::Edge MinCut::add(Node from, Node to, int64_t capacity) {
  const auto edge = static_cast<Edge>(edges_.size());
  add_half(from, to, capacity);
  add_half(to, from, 0);
  return edge;
}

// Levels by breadth, as far as there is capacity left.
bool MinCut::reach() {
  std::fill(level_.begin(), level_.end(), kUnseen);
  level_[kSource] = 0;
  queue_.assign(1, kSource);
  for (size_t i = 0; i < queue_.size(); ++i)
    for (auto edge = first_[queue_[i]]; edge != kEnd; edge = edges_[edge].next) {
      const auto& [to, _, left] = edges_[edge];
      if (left <= 0 || level_[to] != kUnseen) continue;
      level_[to] = level_[queue_[i]] + 1;
      queue_.push_back(to);
    }
  return level_[kSink] != kUnseen;
}

// Along one path of rising levels; 0: there is none left. Without recursion, as paths can be as
// long as the graph.
int64_t MinCut::push_one() {
  path_.clear();
  Node at = kSource;
  while (at != kSink) {
    auto& edge = next_[at];
    while (edge != kEnd && (edges_[edge].left <= 0 || level_[edges_[edge].to] != level_[at] + 1))
      edge = edges_[edge].next;
    if (edge != kEnd) {
      path_.push_back(edge);
      at = edges_[edge].to;
      continue;
    }
    if (path_.empty()) return 0;
    at = edges_[path_.back() ^ 1].to;
    path_.pop_back();
    next_[at] = edges_[next_[at]].next;
  }
  int64_t most = kUncut;
  for (const auto edge : path_) most = std::min(most, edges_[edge].left);
  for (const auto edge : path_) {
    edges_[edge].left -= most;
    edges_[edge ^ 1].left += most;
  }
  return most;
}

int64_t MinCut::solve() {
  while (reach()) {
    next_ = first_;
    while (const auto pushed = push_one()) flow_ += pushed;
  }
  return flow_;
}

}  // namespace tierpilot::swap
