// Which nodes of a large cluster a decision looks at: the rules of coordinator/core/shortlist.h.
#include <algorithm>
#include <tuple>

#include "policies/sim/cluster_view.h"

namespace tierpilot::sim {

// Nodes that can take the task and hold some of its data, most bytes first; slow ones count half.
void ClusterView::choose_holders(size_t most) {
  const NodeSet& able = shown_->nodes;
  holders_able_.clear();
  for (const uint32_t place : holders_)
    if (able.contains(order_[place])) holders_able_.push_back(place);
  if (holders_able_.size() > most) {
    std::sort(holders_able_.begin(), holders_able_.end());
    holders_able_.erase(std::unique(holders_able_.begin(), holders_able_.end()),
                        holders_able_.end());
  }
  if (holders_able_.size() > most) {
    const auto rank = [&](uint32_t place) {
      const NodeState& node = view_.nodes[place];
      const double held = static_cast<double>(node.held_fast_bytes) +
                          0.5 * static_cast<double>(node.held_slow_bytes);
      return std::tuple(-held, load_of(node), place);
    };
    std::nth_element(holders_able_.begin(), holders_able_.begin() + static_cast<ptrdiff_t>(most),
                     holders_able_.end(),
                     [&](uint32_t a, uint32_t b) { return rank(a) < rank(b); });
    holders_able_.resize(most);
  }
  for (const uint32_t place : holders_able_) chosen_.set(order_[place], true);
}

void ClusterView::shorten() {
  chosen_.clear();
  choose_holders(considered_nodes_ / 2);
  by_load_.choose(shown_->nodes, considered_nodes_, chosen_);
  short_.task = view_.task;
  short_.nodes.resize(chosen_.size());
  auto next = short_.nodes.begin();
  chosen_.for_each([&](uint32_t node) {
    *next = view_.nodes[places_[node]];
    next++->candidate = true;
  });
}

}  // namespace tierpilot::sim
