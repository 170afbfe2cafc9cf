// Which nodes of a large cluster a decision looks at: the rules of coordinator/core/shortlist.h.
#include <algorithm>
#include <tuple>

#include "policies/sim/cluster_view.h"

namespace tierpilot::sim {

// Nodes that can take the task and hold some of its data, most bytes first.
void ClusterView::choose_holders(size_t most) {
  ranks_.clear();
  for (const uint32_t node : holders_) {
    if (!shown_->nodes.contains(node)) continue;
    const AtHand& here = at_hand_[node];
    ranks_.push_back(
        {static_cast<double>(here.fast_bytes) + 0.5 * static_cast<double>(here.slow_bytes),
         by_load_.load(node), node});
  }
  if (ranks_.size() > most) {
    std::nth_element(ranks_.begin(), ranks_.begin() + static_cast<ptrdiff_t>(most), ranks_.end(),
                     [](const Rank& a, const Rank& b) {
                       return std::tie(b.held_bytes, a.load, a.node) <
                              std::tie(a.held_bytes, b.load, b.node);
                     });
    ranks_.resize(most);
  }
  for (const Rank& rank : ranks_) {
    chosen_.set(rank.node, true);
    // Anywhere in the cluster, unlike the least loaded; soon copied.
    const NodeState& state = view_.nodes[places_[rank.node]];
    __builtin_prefetch(&state);
    __builtin_prefetch(&state.rates);
  }
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
    next->candidate = true;
    next->held_fast_bytes = at_hand_[node].fast_bytes;
    next->held_slow_bytes = at_hand_[node].slow_bytes;
    ++next;
  });
}

}  // namespace tierpilot::sim
