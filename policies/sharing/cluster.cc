#include "policies/sharing/cluster.h"

#include <stdexcept>

namespace tierpilot::sharing {

uint64_t Node::free_milli() const {
  uint64_t sum = 0;
  for (const auto& unit : units) sum += unit.free_milli;
  return sum;
}

bool fits(const Unit& unit, const Share& share) {
  return unit.free_milli >= share.milli && unit.free_bytes >= share.memory_bytes;
}

bool fits(const Node& node, const Request& request) {
  if (node.cpu_milli < request.cpu_milli || node.memory_bytes < request.memory_bytes) return false;
  if (request.units == 0) return true;
  if (!(request.models >> node.model & 1) || node.units.size() < request.units) return false;
  uint32_t found = 0;
  for (const auto& unit : node.units)
    if (fits(unit, request.share) && ++found == request.units) return true;
  return false;
}

void subtract(Node& node, const Request& request, const std::vector<uint32_t>& units) {
  node.cpu_milli -= request.cpu_milli;
  node.memory_bytes -= request.memory_bytes;
  for (const auto unit : units) {
    node.units[unit].free_milli -= request.share.milli;
    node.units[unit].free_bytes -= request.share.memory_bytes;
  }
}

Cluster::Cluster(std::vector<Node> nodes) : nodes_(std::move(nodes)), versions_(nodes_.size(), 1) {
  for (const auto& node : nodes_) capacity_milli_ += node.free_milli();
}

void Cluster::take(const Request& request, const Placement& placement) {
  Node& node = nodes_.at(placement.node);
  bool right = placement.units.size() == request.units && node.cpu_milli >= request.cpu_milli &&
               node.memory_bytes >= request.memory_bytes;
  for (size_t i = 0; right && i < placement.units.size(); ++i) {
    right = fits(node.units.at(placement.units[i]), request.share);
    for (size_t before = 0; right && before < i; ++before)
      right = placement.units[before] != placement.units[i];
  }
  if (!right) throw std::logic_error("a share was given that is not free");
  subtract(node, request, placement.units);
  given_milli_ += request.total_milli();
  ++versions_[placement.node];
}

void Cluster::release(const Request& request, const Placement& placement) {
  Node& node = nodes_.at(placement.node);
  node.cpu_milli += request.cpu_milli;
  node.memory_bytes += request.memory_bytes;
  for (const auto unit : placement.units) {
    node.units.at(unit).free_milli += request.share.milli;
    node.units.at(unit).free_bytes += request.share.memory_bytes;
    if (node.units[unit].free_milli > kWholeUnit)
      throw std::logic_error("a share was released that was not given");
  }
  given_milli_ -= request.total_milli();
  ++versions_[placement.node];
}

}  // namespace tierpilot::sharing
