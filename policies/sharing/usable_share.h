// What usually comes could use of a node, in thousandths of a unit: what placement by `share`
// keeps.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
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

  class OnHost;

 private:
  // All that want units alike, one after the other.
  struct Kind {
    uint32_t milli;
    uint32_t units;
    uint64_t models;
    size_t begin, end;  // of wants_, by what they want of cores
  };
  struct Want {
    uint32_t cpu_milli;
    uint64_t memory_bytes;
    double share;
    // Of this one and all before of the kind:
    uint64_t most_memory_bytes;
    double share_so_far;
  };
  // Of the requests of a kind that fit at all.
  struct Fitting {
    double share = 0;
    double copies = 0;  // that fit, by share
  };
  // The share of requests that this much of a host is enough for.
  double content(const Kind& kind, uint32_t cpu_milli, uint64_t memory_bytes) const;
  Fitting fitting(const Kind& kind, uint32_t cpu_milli, uint64_t memory_bytes,
                  uint32_t copies) const;

  std::vector<Kind> kinds_;  // by milli
  std::vector<Want> wants_;
};

// The same for several states of the units of one node, whose host and model stay as they are.
// Hardly any kind fits more than two different numbers of times, and to find out what such a number
// means is most of the work.
class UsableShare::OnHost {
 public:
  // Refers to `usable`.
  OnHost(const UsableShare& usable, const Node& host);
  double milli(const std::vector<Unit>& units);

 private:
  struct Known {
    std::array<uint32_t, 2> copies{};  // 0: nothing is known
    std::array<Fitting, 2> fitting{};
  };
  Fitting fitting(size_t kind, uint32_t copies);

  const UsableShare& usable_;
  uint32_t cpu_milli_;
  uint64_t memory_bytes_;
  uint8_t model_;
  boost::container::small_vector<Known, 16> known_;  // by kind
};

}  // namespace tierpilot::sharing
