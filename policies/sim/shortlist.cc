// Which nodes of a large cluster a decision looks at: the rules of coordinator/core/shortlist.h.
#include <algorithm>
#include <tuple>

#include "policies/sim/cluster_view.h"

namespace tierpilot::sim {

// Nodes that can take the task and hold some of its data, most bytes first; slow ones count half.
void ClusterView::list_holders(size_t most) {
  listed_.clear();
  for (const uint32_t place : holders_)
    if (view_.nodes[place].candidate) listed_.push_back(place);
  std::sort(listed_.begin(), listed_.end());
  listed_.erase(std::unique(listed_.begin(), listed_.end()), listed_.end());
  if (listed_.size() <= most) return;
  const auto rank = [&](uint32_t place) {
    const NodeState& node = view_.nodes[place];
    const double held =
        static_cast<double>(node.held_fast_bytes) + 0.5 * static_cast<double>(node.held_slow_bytes);
    return std::tuple(-held, load_of(node), place);
  };
  std::nth_element(listed_.begin(), listed_.begin() + static_cast<ptrdiff_t>(most), listed_.end(),
                   [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
  listed_.resize(most);
  std::sort(listed_.begin(), listed_.end());
}

void ClusterView::shorten() {
  list_holders(considered_nodes_ / 2);
  const auto holders = static_cast<ptrdiff_t>(listed_.size());
  const size_t wanted = std::min<size_t>(candidates_, considered_nodes_);
  for (const auto& [load, index] : by_load_) {
    if (listed_.size() == wanted) break;
    const uint32_t place = nodes_[index].place;
    if (view_.nodes[place].candidate &&
        !std::binary_search(listed_.begin(), listed_.begin() + holders, place))
      listed_.push_back(place);
  }
  std::sort(listed_.begin(), listed_.end());
  short_.task = view_.task;
  short_.nodes.clear();
  for (const uint32_t place : listed_) short_.nodes.push_back(view_.nodes[place]);
}

}  // namespace tierpilot::sim
