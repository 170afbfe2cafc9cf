#include "policies/sharing/placement.h"

#include <limits>

#include "base/random.h"

namespace tierpilot::sharing {
namespace {

constexpr double kDoesNotFit = -std::numeric_limits<double>::infinity();
constexpr size_t kMostRemembered = size_t{1} << 23;  // nodes of all kinds of requests

struct StateHash {
  size_t operator()(const Node* node) const {
    uint64_t hash = mixed_bits(node->cpu_milli + (uint64_t{node->model} << 32));
    hash ^= node->memory_bytes;
    for (const auto& unit : node->units)
      hash = mixed_bits(hash) ^ unit.free_milli ^ (unit.free_bytes << 10);
    return mixed_bits(hash);
  }
};
struct SameState {
  bool operator()(const Node* a, const Node* b) const { return *a == *b; }
};

// What nodes of a state score. Many are alike while a cluster has room.
using ScoresByState = std::unordered_map<const Node*, double, StateHash, SameState>;

}  // namespace

size_t Placer::Hash::operator()(const Request& request) const {
  uint64_t hash = mixed_bits(request.cpu_milli + (uint64_t{request.units} << 32));
  hash = mixed_bits(hash ^ request.memory_bytes);
  hash = mixed_bits(hash ^ request.share.milli ^ (request.share.memory_bytes << 10));
  return mixed_bits(hash ^ request.models);
}

Placer::Known& Placer::known_of(const Cluster& cluster, const Request& request) {
  const size_t nodes = cluster.nodes().size();
  if (!known_.contains(request) && (known_.size() + 1) * nodes > kMostRemembered) known_.clear();
  Known& known = known_[request];
  if (known.versions.size() != nodes) {
    known.versions.assign(nodes, 0);
    known.scores.assign(nodes, kDoesNotFit);
  }
  return known;
}

double Placer::worth(const Cluster& cluster, uint32_t node) {
  worth_versions_.resize(cluster.nodes().size(), 0);
  worths_.resize(cluster.nodes().size(), 0);
  if (worth_versions_[node] != cluster.version(node)) {
    worth_versions_[node] = cluster.version(node);
    worths_[node] = scorer_.worth(cluster.nodes()[node]);
  }
  return worths_[node];
}

std::optional<Placement> Placer::choose(const Cluster& cluster, const Request& request) {
  Known& known = known_of(cluster, request);
  ScoresByState scores;
  double best = kDoesNotFit;
  uint32_t chosen = 0;
  for (uint32_t i = 0; i < cluster.nodes().size(); ++i) {
    if (known.versions[i] != cluster.version(i)) {
      const Node& node = cluster.nodes()[i];
      known.versions[i] = cluster.version(i);
      known.scores[i] = kDoesNotFit;
      if (fits(node, request)) {
        const auto [same, is_new] = scores.try_emplace(&node);
        if (is_new) same->second = scorer_.offer(node, request, worth(cluster, i)).score;
        known.scores[i] = same->second;
      }
    }
    if (known.scores[i] > best) {
      best = known.scores[i];
      chosen = i;
    }
  }
  if (best == kDoesNotFit) return std::nullopt;
  return Placement{chosen,
                   scorer_.offer(cluster.nodes()[chosen], request, worth(cluster, chosen)).units};
}

}  // namespace tierpilot::sharing
