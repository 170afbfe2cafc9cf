// What a replay has to keep to.
#pragma once

#include <cstdint>
#include <limits>

#include "policies/swap/link/link.h"

namespace tierpilot::swap {

struct Limits {
  int64_t budget_bytes = 0;
  // A replay whose time exceeds this many times the base time has failed.
  double thrash_limit = 2;
  // A replay that cannot end before this is given up: for searches that know a shorter one.
  int64_t give_up_ns = std::numeric_limits<int64_t>::max();
  // Whether operators can be run again; where they cannot, what leaves has to be copied.
  bool recompute = true;
  Link link{};
};

}  // namespace tierpilot::swap
