#include "coordinator/core/decisions/shortlist.h"

#include <algorithm>
#include <map>

#include "policies/scheduling/shortlist.h"

namespace tierpilot {
namespace {

using Nodes = std::vector<const NodeRecord*>;

bool by_slot(const NodeRecord* a, const NodeRecord* b) {
  return a->slot < b->slot;
}

// The registry and the catalog as policies/scheduling/shortlist.h wants them.
class ListedCluster {
 public:
  using Node = const NodeRecord*;
  // Of nodes with room: those that have not been looked at.
  struct Class {
    NodesByLoad::const_iterator next, end;
  };

  ListedCluster(const ClusterState& state, const Task& task, uint64_t data_bytes,
                const Awaiting& first)
      : state_(state), task_(task), data_bytes_(data_bytes), first_(first) {
    chosen_.reserve(state.settings.considered_nodes + kMostFullShown);
    find_holders();
    const auto& by_speed = state.registry.up_by_speed(state.settings.backlog_units);
    for (const auto& [speed, alike] : by_speed)
      classes_.push_back({alike.with_room.begin(), alike.with_room.end()});
  }

  template <class Visit>
  void for_each_holder(Visit visit) const {
    for (const auto& [node, held] : holders_) visit(node, held.fast_bytes, held.slow_bytes);
  }
  bool can_take(Node node) const {
    return tierpilot::can_take(state_.settings, *node, task_, data_bytes_) && !first_.keeps(*node);
  }
  bool could_take(Node node) const {
    return tierpilot::could_take(*node, task_, data_bytes_) && !first_.keeps(*node);
  }
  double load(Node node) const { return assigned_load(node->assigned_units, node->facts.units); }
  uint32_t slot(Node node) const { return node->slot; }
  size_t chosen() const { return chosen_.size(); }
  void choose(Node node) {
    chosen_.push_back(node);
    for_data_.insert(std::lower_bound(for_data_.begin(), for_data_.end(), node, by_slot), node);
  }
  void choose_full(Node node) { chosen_.push_back(node); }
  std::vector<Class>& classes() { return classes_; }
  void choose_least_loaded(Class& alike, size_t most) {
    for (; alike.next != alike.end && chosen_.size() < most; ++alike.next) {
      const bool is_chosen =
          std::binary_search(for_data_.begin(), for_data_.end(), *alike.next, by_slot);
      if (!is_chosen && can_take(*alike.next)) chosen_.push_back(*alike.next);
    }
  }
  Nodes take_chosen() {
    std::sort(chosen_.begin(), chosen_.end(), by_slot);
    return std::move(chosen_);
  }

 private:
  struct Held {
    uint64_t fast_bytes = 0;
    uint64_t slow_bytes = 0;
  };
  void find_holders() {
    for (const auto& use : task_.spec.datasets) {
      const auto* entry = state_.catalog.find(use.dataset);
      if (!entry) continue;
      for (const auto& [name, replica] : entry->replicas) {
        const auto* node = state_.registry.find(name);
        if (!node || node->life != NodeLife::kUp || replica.version != entry->dataset.version)
          continue;
        if (replica.in_fast)
          holders_[node].fast_bytes += replica.bytes;
        else if (replica.in_slow)
          holders_[node].slow_bytes += replica.bytes;
      }
    }
  }

  const ClusterState& state_;
  const Task& task_;
  const uint64_t data_bytes_;
  const Awaiting& first_;
  std::map<Node, Held> holders_;
  std::vector<Class> classes_;
  Nodes chosen_;
  Nodes for_data_;  // of these, by slot
};

}  // namespace

bool could_take(const NodeRecord& node, const Task& task, uint64_t data_bytes) {
  return node.takes(task.id) && (task.spec.node.empty() || task.spec.node == node.facts.name) &&
         node.facts.resources().hold(task.spec.needs(data_bytes)) &&
         node.has_swap_room(task.spec.swap_room_bytes);
}

bool can_take(const CoreSettings& settings, const NodeRecord& node, const Task& task,
              uint64_t data_bytes) {
  return could_take(node, task, data_bytes) &&
         node.has_units(settings.backlog_units, task.spec.units);
}

std::vector<const NodeRecord*> shortlist(const ClusterState& state, const Task& task,
                                         uint64_t data_bytes, bool with_full,
                                         const Awaiting& first) {
  const size_t count = state.settings.considered_nodes;
  const Nodes& up = state.registry.up();
  if (up.size() <= count) return up;
  if (!task.spec.node.empty()) {
    const auto* node = state.registry.find(task.spec.node);
    return node && can_take(state.settings, *node, task, data_bytes) && !first.keeps(*node)
               ? Nodes{node}
               : Nodes{};
  }
  ListedCluster cluster(state, task, data_bytes, first);
  std::vector<DataHolder<const NodeRecord*>> scratch;
  make_shortlist(cluster, count, with_full, scratch);
  return cluster.take_chosen();
}

}  // namespace tierpilot
