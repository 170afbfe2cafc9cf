// What usually comes could use of a node, in thousandths of a unit: what placement by `share`
// keeps.
#pragma once

#include <vector>

#include "policies/sharing/fragmentation.h"

namespace tierpilot::sharing {

class UsableShare {
 public:
  explicit UsableShare(const std::vector<TypicalRequest>& typical);

  // The mean of two estimates, both over requests drawn from what usually comes: the free share of
  // units that one such request could be put on (what fragmentation.h does not count), and what as
  // many requests of the same kind as fit would take. The first does not see that a node with cores
  // for one more request keeps all its other units idle; the second does not see that kinds mix.
  double milli(const Node& node) const;

 private:
  // All that want units alike, one after the other.
  struct Kind {
    uint32_t milli;
    uint32_t units;
    size_t begin, end;  // of wants_
  };
  struct Want {
    uint64_t models;
    uint64_t memory_bytes;
    uint32_t cpu_milli;
    double share;
    double per_cpu_milli;  // 1 / cpu_milli, or 0
    double per_memory_byte;
  };
  double of_kind(const Kind& kind, const Node& node, double usable, double copies) const;

  std::vector<Kind> kinds_;  // by milli
  std::vector<Want> wants_;
};

}  // namespace tierpilot::sharing
