// Running totals and measured rates of the pool.
#pragma once

#include <cstdint>

#include "daemon/memory/pool/types.h"

namespace tierpilot {

// Bytes per nanosecond, which is GB/s.
class RateMeter {
 public:
  void add(uint64_t bytes, int64_t ns) {
    if (bytes == 0 || ns <= 0) return;
    last_ = static_cast<double>(bytes) / static_cast<double>(ns);
    bytes_ = kKeep * bytes_ + static_cast<double>(bytes);
    ns_ = kKeep * ns_ + static_cast<double>(ns);
  }

  TransferRate rate() const {
    if (ns_ == 0) return {};
    return {last_, bytes_ / ns_};
  }

 private:
  static constexpr double kKeep = 0.9;
  double last_ = 0;
  double bytes_ = 0;
  double ns_ = 0;
};

// What making room cost one request.
struct EvictionTally {
  uint64_t bytes = 0;
  uint64_t written_bytes = 0;
  int64_t ns = 0;
};

}  // namespace tierpilot
