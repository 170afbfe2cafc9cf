#include "policies/sim/sharing/full_load/relaxed_cluster.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "policies/sharing/fragmentation.h"

namespace tierpilot::sharing {
namespace {

constexpr size_t kMostNodeKinds = 64;  // bits of RequestKind::fits

double divided(double of, double all) {
  return all > 0 ? of / all : 0;
}

}  // namespace

template <class Key>
std::vector<RelaxedCluster::NodeKind> RelaxedCluster::kinds_by(const std::vector<Node>& nodes,
                                                               Key key) {
  std::map<decltype(key(Node{})), NodeKind> kinds;
  for (const auto& node : nodes) {
    if (node.units.empty()) continue;
    auto& [largest, has] = kinds[key(node)];
    largest.model = node.model;
    largest.cpu_milli = std::max(largest.cpu_milli, node.cpu_milli);
    largest.memory_bytes = std::max(largest.memory_bytes, node.memory_bytes);
    largest.units.resize(std::max(largest.units.size(), node.units.size()));
    has.cpu_milli += node.cpu_milli;
    has.memory_bytes += static_cast<double>(node.memory_bytes);
    has.units += static_cast<double>(node.units.size());
  }
  std::vector<NodeKind> all;
  for (auto& [_, kind] : kinds) all.push_back(std::move(kind));
  return all;
}

std::vector<RelaxedCluster::NodeKind> RelaxedCluster::kinds_of(const std::vector<Node>& nodes) {
  auto kinds = kinds_by(nodes, [](const Node& node) {
    return std::tuple(node.model, node.units.size(), node.cpu_milli, node.memory_bytes);
  });
  if (kinds.size() > kMostNodeKinds)
    kinds = kinds_by(nodes, [](const Node& node) { return node.model; });
  return kinds;
}

std::vector<RelaxedCluster::RequestKind> RelaxedCluster::kinds_of(
    const std::vector<Request>& requests) const {
  std::vector<RequestKind> all;
  for (const auto& [request, share] : typical_requests(requests, 1)) {
    if (request.total_milli() == 0) continue;
    RequestKind kind{request, std::round(share * static_cast<double>(requests.size())), 0};
    kind.request.share.memory_bytes = 0;  // not among the rows
    for (size_t i = 0; i < nodes_.size(); ++i)
      if (fits(nodes_[i].largest, kind.request)) kind.fits |= uint64_t{1} << i;
    if (kind.fits != 0) all.push_back(kind);
  }
  return all;
}

RelaxedCluster::RelaxedCluster(const std::vector<Node>& nodes, const std::vector<Request>& requests)
    : nodes_(kinds_of(nodes)), requests_(kinds_of(requests)) {
  std::set<uint32_t> shares;
  for (const auto& kind : requests_) shares.insert(kind.request.share.milli);
  shares_.assign(shares.begin(), shares.end());
}

void RelaxedCluster::add_function(const DualFeasible& function, std::vector<double>& prices) {
  const size_t each = kHostRows + functions_.size();
  for (size_t node = nodes_.size(); node > 0; --node)
    prices.insert(prices.begin() + static_cast<ptrdiff_t>(node * each), 0);
  functions_.push_back(function);
}

RelaxedCluster::Priced RelaxedCluster::priced(const std::vector<double>& prices) const {
  const size_t each = kHostRows + functions_.size();
  struct Prices {
    double cpu_milli, memory_byte;
    DualFeasible share;
  };
  Priced all;
  std::vector<Prices> of_node(nodes_.size());
  for (size_t node = 0; node < nodes_.size(); ++node) {
    const double* row = &prices[node * each];
    const auto& has = nodes_[node].has;
    auto& [cpu_milli, memory_byte, share] = of_node[node];
    cpu_milli = divided(row[0], has.cpu_milli);
    memory_byte = divided(row[1], has.memory_bytes);
    for (const auto milli : shares_) {
      share[milli] = 0;
      for (size_t i = 0; i < functions_.size(); ++i)
        share[milli] += functions_[i][milli] * divided(row[kHostRows + i], has.units);
    }
    for (size_t i = 0; i < each; ++i) all.bound += row[i];
  }
  for (const auto& [request, count, fits] : requests_) {
    double most = 0;
    uint8_t chosen = kNowhere;
    for (size_t node = 0; node < nodes_.size(); ++node) {
      if (!(fits >> node & 1)) continue;
      const auto& [cpu_milli, memory_byte, share] = of_node[node];
      const double left = static_cast<double>(request.total_milli()) -
                          cpu_milli * request.cpu_milli -
                          memory_byte * static_cast<double>(request.memory_bytes) -
                          request.units * share[request.share.milli];
      if (left <= most) continue;
      most = left;
      chosen = static_cast<uint8_t>(node);
    }
    all.bound += count * most;
    all.choice.push_back(chosen);
  }
  return all;
}

double RelaxedCluster::worth(const Choice& choice) const {
  double worth = 0;
  for (size_t i = 0; i < choice.size(); ++i)
    if (choice[i] != kNowhere)
      worth += requests_[i].count * static_cast<double>(requests_[i].request.total_milli());
  return worth;
}

std::vector<double> RelaxedCluster::taken(const Choice& choice) const {
  const size_t each = kHostRows + functions_.size();
  std::vector<double> taken(rows(), 0);
  for (size_t i = 0; i < choice.size(); ++i) {
    if (choice[i] == kNowhere) continue;
    const auto& [request, count, _] = requests_[i];
    const auto& has = nodes_[choice[i]].has;
    double* row = &taken[choice[i] * each];
    row[0] += divided(count * request.cpu_milli, has.cpu_milli);
    row[1] += divided(count * static_cast<double>(request.memory_bytes), has.memory_bytes);
    for (size_t f = 0; f < functions_.size(); ++f)
      row[kHostRows + f] +=
          divided(count * request.units * functions_[f][request.share.milli], has.units);
  }
  return taken;
}

void RelaxedCluster::add_given(const Choice& choice, double part,
                               std::vector<SharesGiven>& given) const {
  for (size_t i = 0; i < choice.size(); ++i)
    if (choice[i] != kNowhere)
      given[choice[i]][requests_[i].request.share.milli] +=
          part * requests_[i].count * requests_[i].request.units;
}

}  // namespace tierpilot::sharing
