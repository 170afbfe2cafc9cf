// Which nodes of a large cluster a decision looks at: the rules of
// coordinator/core/decisions/shortlist.h.
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
    prefetch(view_.nodes[places_[rank.node]]);  // anywhere in the cluster; soon copied
  }
}

// Beside the candidates: for these a task may be kept back.
void ClusterView::add_full_holders() {
  constexpr size_t kMost = 8;
  ranks_.clear();
  for (const uint32_t node : holders_)
    if (at_hand_[node].fast_bytes > 0 && !shown_->nodes.contains(node) &&
        has_kind(nodes_[node], shown_->shape))
      ranks_.push_back({static_cast<double>(at_hand_[node].fast_bytes), by_load_.load(node), node});
  const size_t count = std::min(kMost, ranks_.size());
  std::partial_sort(ranks_.begin(), ranks_.begin() + static_cast<ptrdiff_t>(count), ranks_.end(),
                    [](const Rank& a, const Rank& b) {
                      return std::tie(b.held_bytes, a.load, a.node) <
                             std::tie(a.held_bytes, b.load, b.node);
                    });
  for (size_t i = 0; i < count; ++i) {
    chosen_.set(ranks_[i].node, true);
    NodeState& state = view_.nodes[places_[ranks_[i].node]];
    state.candidate = false;
    state.full = true;
  }
}

void ClusterView::shorten() {
  chosen_.clear();
  choose_holders(considered_nodes_ / 2);
  by_load_.choose(shown_->nodes, considered_nodes_, chosen_);
  if (shows_full_) add_full_holders();
  for (const uint32_t node : holders_)
    if (chosen_.contains(node)) tell_held(node);
  short_.task = view_.task;
  short_.nodes.resize(chosen_.size());
  auto next = short_.nodes.begin();
  chosen_.for_each([&](uint32_t node) { *next++ = view_.nodes[places_[node]]; });
}

}  // namespace tierpilot::sim
