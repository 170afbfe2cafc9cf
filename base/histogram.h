// A log-linear histogram: 16 buckets per power of two, so a quantile is within 1/16 of the truth.
// Units are the caller's (name the variable for them: latency_ns).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tierpilot {

class Histogram {
 public:
  static constexpr int kSubBits = 4;
  static constexpr size_t kBuckets = (64 - kSubBits + 1) << kSubBits;

  void add(uint64_t value, uint64_t count = 1);
  void merge(const Histogram& other);

  uint64_t count() const { return count_; }
  uint64_t min() const { return count_ ? min_ : 0; }
  uint64_t max() const { return max_; }
  uint64_t sum() const { return sum_; }
  double mean() const {
    return count_ ? static_cast<double>(sum_) / static_cast<double>(count_) : 0;
  }
  // The value below which a share q in [0, 1] lies; 0 when empty.
  double quantile(double q) const;
  // How many lie below `bound`; exact where a bucket begins there, as at every power of two.
  uint64_t count_below(uint64_t bound) const;

  static size_t bucket_of(uint64_t value);
  static uint64_t bucket_floor(size_t bucket);

 private:
  std::array<uint64_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  uint64_t min_ = UINT64_MAX;
  uint64_t max_ = 0;
};

}  // namespace tierpilot
