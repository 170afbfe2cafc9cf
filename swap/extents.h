// Which ranges of a tier are free: first fit in the order of offsets, neighbours joined.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace tierpilot::swap {

// Ranges that are free, offset to bytes.
using Gaps = std::map<int64_t, int64_t>;
// One more, that is free of all others: neighbours are joined.
void add_gap(Gaps& gaps, int64_t offset, int64_t bytes);

class Extents {
 public:
  static constexpr int64_t kAlignment = 4096;  // what direct writes to any disk need

  // What a range of so many bytes takes.
  static int64_t aligned(int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  explicit Extents(int64_t bytes);
  // The offset of a range; nothing when no gap is large enough. `bytes` is above 0.
  std::optional<int64_t> take(int64_t bytes);
  // A range that was taken, by the same size.
  void give_back(int64_t offset, int64_t bytes);

  int64_t used_bytes() const { return used_; }
  int64_t peak_bytes() const { return peak_; }

 private:
  Gaps free_;
  int64_t used_ = 0, peak_ = 0;
};

}  // namespace tierpilot::swap
