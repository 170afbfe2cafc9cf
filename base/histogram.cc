#include "base/histogram.h"

#include <algorithm>
#include <bit>

namespace tierpilot {

size_t Histogram::bucket_of(uint64_t value) {
  if (value < (1u << kSubBits)) return value;
  const int exponent = std::bit_width(value) - 1 - kSubBits;
  return (static_cast<size_t>(exponent + 1) << kSubBits) +
         ((value >> exponent) & ((1u << kSubBits) - 1));
}

uint64_t Histogram::bucket_floor(size_t bucket) {
  if (bucket < (1u << kSubBits)) return bucket;
  const int exponent = static_cast<int>(bucket >> kSubBits) - 1;
  const uint64_t mantissa = (1u << kSubBits) + (bucket & ((1u << kSubBits) - 1));
  return mantissa << exponent;
}

void Histogram::add(uint64_t value, uint64_t count) {
  if (count == 0) return;
  buckets_[bucket_of(value)] += count;
  count_ += count;
  sum_ += value * count;
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
}

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  min_ = std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
}

double Histogram::quantile(double q) const {
  if (count_ == 0) return 0;
  const double rank = std::clamp(q, 0.0, 1.0) * static_cast<double>(count_ - 1);
  double below = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    const double here = static_cast<double>(buckets_[i]);
    if (here > 0 && below + here > rank) {
      const double floor = static_cast<double>(bucket_floor(i));
      const double next = i + 1 < kBuckets ? static_cast<double>(bucket_floor(i + 1)) : floor;
      const double value = floor + (next - floor) * ((rank - below) / here);
      return std::clamp(value, static_cast<double>(min_), static_cast<double>(max_));
    }
    below += here;
  }
  return static_cast<double>(max_);
}

uint64_t Histogram::count_below(uint64_t bound) const {
  uint64_t below = 0;
  for (size_t i = 0; i < bucket_of(bound); ++i) below += buckets_[i];
  return below;
}

}  // namespace tierpilot
