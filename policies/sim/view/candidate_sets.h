// The nodes that can take tasks of a shape now. Kept for the last few shapes: a workload mostly has
// few, and looking at all nodes again for each task would be dear.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "policies/sim/view/node_set.h"
#include "policies/sim/view/task_shape.h"

namespace tierpilot::sim {

class CandidateSets {
 public:
  explicit CandidateSets(size_t nodes) : node_count_(nodes) { sets_.reserve(kShapesKept); }

  // Makes the shape the selected one; can_take(node, shape) is asked of each of the nodes where
  // the shape is new. True: another one was selected before.
  template <class CanTake>
  bool select(const TaskShape& shape, const std::vector<uint32_t>& nodes, CanTake can_take) {
    const bool changed = !selected_ || selected_->shape != shape;
    if (changed) {
      selected_ = find(shape);
      if (!selected_) {
        selected_ = &make_place(shape);
        for (const uint32_t node : nodes) selected_->nodes.set(node, can_take(node, shape));
      }
    }
    selected_->last_selected = ++selections_;
    return changed;
  }
  bool any_selected() const { return selected_ != nullptr; }
  // Of the selected one.
  const TaskShape& shape() const { return selected_->shape; }
  const NodeSet& nodes() const { return selected_->nodes; }

  // The node has changed.
  template <class CanTake>
  void update(uint32_t node, CanTake can_take) {
    for (Candidates& candidates : sets_)
      candidates.nodes.set(node, can_take(node, candidates.shape));
  }
  void clear() {
    sets_.clear();
    selected_ = nullptr;
  }

 private:
  struct Candidates {
    TaskShape shape;
    NodeSet nodes;
    uint64_t last_selected = 0;
  };
  static constexpr size_t kShapesKept = 8;

  Candidates* find(const TaskShape& shape) {
    const auto known = std::find_if(sets_.begin(), sets_.end(), [&](const Candidates& candidates) {
      return candidates.shape == shape;
    });
    return known == sets_.end() ? nullptr : &*known;
  }
  // Without any node; the one that was not selected for longest goes.
  Candidates& make_place(const TaskShape& shape) {
    if (sets_.size() < kShapesKept) return sets_.emplace_back(shape, NodeSet(node_count_));
    const auto oldest = std::min_element(
        sets_.begin(), sets_.end(),
        [](const Candidates& a, const Candidates& b) { return a.last_selected < b.last_selected; });
    std::rotate(oldest, oldest + 1, sets_.end());
    sets_.back().shape = shape;
    sets_.back().nodes.clear();
    return sets_.back();
  }

  const size_t node_count_;
  std::vector<Candidates> sets_;
  Candidates* selected_ = nullptr;  // among them
  uint64_t selections_ = 0;
};

}  // namespace tierpilot::sim
