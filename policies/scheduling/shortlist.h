// Which nodes of a large cluster a decision looks at. Looking at all of a thousand nodes costs more
// than it finds; the idea is that of Kubernetes' percentageOfNodesToScore, but the choice is not
// random.
//
// As many as are considered, of those that can take the task: up to half of them for the data they
// hold, the others for having the least load, as many of each speed class (speed_class.h), as the
// least loaded of a cluster of unlike nodes are the slow ones. And where tasks may be kept back, a
// few for the data they have in fast memory although they are full.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <vector>

#include "policies/scheduling/speed_class.h"

namespace tierpilot {

// Shown beside the candidates.
inline constexpr size_t kMostFullShown = 8;

// Assigned units per unit.
constexpr double assigned_load(uint32_t assigned, uint32_t units) {
  return static_cast<double>(assigned) / units;
}

// What the rule has to know of a cluster and a task that is to be placed.
//   for_each_holder(visit)  visit(node, fast_bytes, slow_bytes) with each node that is up and has
//                           some of the task's data
//   can_take, could_take    now, and once tasks there have ended
//   load, slot              see assigned_load(); of equal nodes the one of the lower slot comes
//                           first
//   choose, choose_full     puts the node on the list; `chosen` is how many there are
//   classes                 of speed, the fastest first
//   choose_least_loaded     puts nodes of the class that can take it on the list, the least loaded
//                           first, until it has so many; those that are on it do not count
template <class C>
concept ShortlistedCluster =
    requires(C cluster, typename C::Node node, size_t most,
             decltype(*std::begin(std::declval<C&>().classes()))& speed_class) {
  cluster.for_each_holder([](typename C::Node, uint64_t, uint64_t) {});
  { cluster.can_take(node) } -> std::same_as<bool>;
  { cluster.could_take(node) } -> std::same_as<bool>;
  { cluster.load(node) } -> std::same_as<double>;
  { cluster.slot(node) } -> std::same_as<uint32_t>;
  { cluster.chosen() } -> std::same_as<size_t>;
  cluster.choose(node);
  cluster.choose_full(node);
  cluster.choose_least_loaded(speed_class, most);
};

template <class Node>
struct DataHolder {
  double bytes = 0;  // of the task's data
  double load = 0;
  uint32_t slot = 0;
  Node node;
};

template <class Node>
void keep_those_with_most_data(std::vector<DataHolder<Node>>& holders, size_t most) {
  if (holders.size() <= most) return;
  std::nth_element(holders.begin(), holders.begin() + static_cast<ptrdiff_t>(most), holders.end(),
                   [](const auto& a, const auto& b) {
                     return std::tie(b.bytes, a.load, a.slot) < std::tie(a.bytes, b.load, b.slot);
                   });
  holders.erase(holders.begin() + static_cast<ptrdiff_t>(most), holders.end());
}

// Of each class as many, the fastest first; what a class is short of falls to the slower ones, and
// in the end to any.
template <ShortlistedCluster Cluster>
void choose_of_each_class(Cluster& cluster, size_t most) {
  auto&& classes = cluster.classes();
  const auto count = static_cast<size_t>(std::distance(std::begin(classes), std::end(classes)));
  size_t left = count;
  for (auto& speed_class : classes)
    cluster.choose_least_loaded(speed_class,
                                cluster.chosen() + fair_share(most - cluster.chosen(), left--));
  if (count < 2) return;
  for (auto& speed_class : classes) cluster.choose_least_loaded(speed_class, most);
}

// `with_full`: tasks may be kept back. `scratch` is overwritten.
template <ShortlistedCluster Cluster>
void make_shortlist(Cluster& cluster, size_t considered, bool with_full,
                    std::vector<DataHolder<typename Cluster::Node>>& scratch) {
  using Node = typename Cluster::Node;
  const auto add = [&](Node node, double bytes) {
    scratch.push_back({bytes, cluster.load(node), cluster.slot(node), node});
  };
  scratch.clear();
  cluster.for_each_holder([&](Node node, uint64_t fast_bytes, uint64_t slow_bytes) {
    if (cluster.can_take(node))
      add(node, static_cast<double>(fast_bytes) + 0.5 * static_cast<double>(slow_bytes));
  });
  keep_those_with_most_data(scratch, considered / 2);
  for (const auto& holder : scratch) cluster.choose(holder.node);
  choose_of_each_class(cluster, considered);
  if (!with_full) return;
  scratch.clear();
  cluster.for_each_holder([&](Node node, uint64_t fast_bytes, uint64_t) {
    if (fast_bytes > 0 && !cluster.can_take(node) && cluster.could_take(node))
      add(node, static_cast<double>(fast_bytes));
  });
  keep_those_with_most_data(scratch, kMostFullShown);
  for (const auto& holder : scratch) cluster.choose_full(holder.node);
}

}  // namespace tierpilot
