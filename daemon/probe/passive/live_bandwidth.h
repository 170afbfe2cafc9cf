// The bandwidth of the latest work that was seen, from two cumulative counters.
#pragma once

#include <cstdint>
#include <optional>

namespace tierpilot {

class LiveBandwidth {
 public:
  // Bytes per nanosecond of the latest stretch between two updates in which there was some; nothing
  // until then.
  std::optional<double> update(uint64_t bytes, uint64_t busy_ns) {
    if (bytes > bytes_ && busy_ns > busy_ns_)
      gb_per_s_ = static_cast<double>(bytes - bytes_) / static_cast<double>(busy_ns - busy_ns_);
    bytes_ = bytes;
    busy_ns_ = busy_ns;
    return gb_per_s_;
  }

 private:
  uint64_t bytes_ = 0, busy_ns_ = 0;
  std::optional<double> gb_per_s_;
};

}  // namespace tierpilot
