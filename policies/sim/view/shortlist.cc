// Which nodes of a large cluster a decision looks at: those of policies/scheduling/shortlist.h.
#include <boost/container/small_vector.hpp>

#include "policies/scheduling/shortlist.h"
#include "policies/sim/view/cluster_view.h"

namespace tierpilot::sim {

// The view as policies/scheduling/shortlist.h wants it.
class ClusterView::Listing {
 public:
  using Node = uint32_t;
  using Class = LoadOrder::Class;

  explicit Listing(ClusterView& all) : all_(all) { all.by_load_.list_classes(classes_); }

  template <class Visit>
  void for_each_holder(Visit visit) const {
    for (const uint32_t node : all_.at_hand_.holders())
      visit(node, all_.at_hand_.at(node).fast, all_.at_hand_.at(node).slow);
  }
  bool can_take(Node node) const { return all_.candidates_.nodes().contains(node); }
  bool could_take(Node node) const {
    return all_.nodes_.could_take(node, all_.candidates_.shape());
  }
  double load(Node node) const { return all_.by_load_.load(node); }
  uint32_t slot(Node node) const { return node; }
  size_t chosen() const { return all_.chosen_.size(); }
  void choose(Node node) {
    all_.chosen_.set(node, true);
    prefetch(all_.nodes_.state(node));  // anywhere in the cluster; soon copied
  }
  void choose_full(Node node) {
    all_.chosen_.set(node, true);
    NodeState& state = all_.nodes_.state(node);
    state.candidate = false;
    state.full = true;
  }
  auto& classes() { return classes_; }
  void choose_least_loaded(const Class& alike, size_t most) {
    LoadOrder::add(alike, all_.candidates_.nodes(), most, all_.chosen_);
  }

 private:
  ClusterView& all_;
  boost::container::small_vector<Class, 8> classes_;
};

void ClusterView::shorten() {
  chosen_.clear();
  Listing listing(*this);
  make_shortlist(listing, considered_nodes_, shows_full_, ranks_);
  for (const uint32_t node : at_hand_.holders())
    if (chosen_.contains(node)) tell_held(node);
  short_.task = nodes_.view().task;
  short_.nodes.resize(chosen_.size());
  auto next = short_.nodes.begin();
  chosen_.for_each([&](uint32_t node) { *next++ = nodes_.state(node); });
}

}  // namespace tierpilot::sim
