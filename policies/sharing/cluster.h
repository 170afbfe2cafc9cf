// Which shares of a cluster's units are free.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/sharing/share.h"

namespace tierpilot::sharing {

struct Unit {
  uint32_t free_milli = kWholeUnit;
  uint64_t free_bytes = 0;
  bool operator==(const Unit&) const = default;
};

struct Node {
  uint32_t cpu_milli = 0;  // free
  uint64_t memory_bytes = 0;
  uint8_t model = 0;  // of its units: a bit's number in Request::models
  std::vector<Unit> units;

  uint64_t free_milli() const;
  bool operator==(const Node&) const = default;
};

// Whether the node's cores, memory and model will do and enough units have the share.
bool fits(const Node& node, const Request& request);
bool fits(const Unit& unit, const Share& share);

class Cluster {
 public:
  explicit Cluster(std::vector<Node> nodes);

  const std::vector<Node>& nodes() const { return nodes_; }
  // Grows with each change of that node; what was reckoned of a node holds while it stands still.
  uint64_t version(uint32_t node) const { return versions_[node]; }
  uint64_t capacity_milli() const { return capacity_milli_; }
  uint64_t given_milli() const { return given_milli_; }

  // The placement has to fit; anything else is a fault of the caller (std::logic_error).
  void take(const Request& request, const Placement& placement);
  void release(const Request& request, const Placement& placement);

 private:
  std::vector<Node> nodes_;
  std::vector<uint64_t> versions_;
  uint64_t capacity_milli_ = 0;
  uint64_t given_milli_ = 0;
};

// What taking the units would leave, without a cluster.
void subtract(Node& node, const Request& request, const std::vector<uint32_t>& units);

}  // namespace tierpilot::sharing
