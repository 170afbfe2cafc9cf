// The link between device memory and the host pool: one copy at a time each way, both ways at once.
#pragma once

#include <cmath>
#include <cstdint>

namespace tierpilot::swap {

struct Link {
  double gb_per_s = 0;     // each way, in 1e9 bytes a second; 0: nothing can be swapped
  int64_t latency_ns = 0;  // of each copy; does not keep the next one from starting

  bool exists() const { return gb_per_s > 0; }
  // For how long the copy keeps the link busy; 17 minutes at most, so that those of millions of
  // copies can be added.
  int64_t copy_ns(int64_t bytes) const {
    constexpr double kMost_ns = 1e12;
    const double ns = std::ceil(static_cast<double>(bytes) / gb_per_s);
    return static_cast<int64_t>(std::fmin(ns, kMost_ns));
  }
};

}  // namespace tierpilot::swap
