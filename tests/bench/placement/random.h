// Random numbers that cost little beside a memory access, also on an emulated CPU.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

namespace tierpilot::bench {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // xorshift64 (Marsaglia, "Xorshift RNGs", 2003).
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  // `bound` is at most 2^32.
  uint64_t below(uint64_t bound) { return (next() >> 32) * bound >> 32; }

 private:
  uint64_t state_;
};

// Ranks 0 to n-1, each with a probability as 1 / (rank + 1): Zipf's law with exponent 1, as the
// whole part of (n+1)^u for u even in [0, 1). Powers of two by a table: exp2() is slow where
// floating point is emulated.
class ZipfRanks {
 public:
  explicit ZipfRanks(uint32_t n)
      : n_(n), octaves_(static_cast<uint64_t>(std::log2(n + 1.0) * kOne)) {
    for (size_t i = 0; i < power_.size(); ++i)
      power_[i] =
          static_cast<uint64_t>(std::exp2(static_cast<double>(i) / kSteps) * (uint64_t{1} << 32));
  }

  uint32_t next(Random& random) const {
    // 32.32 fixed point.
    const uint64_t exponent = (octaves_ >> 8) * (random.next() >> 40) >> 16;
    const uint64_t step = (exponent & (kOne - 1)) >> 24, rest = exponent & 0xffffff;
    const uint64_t mantissa = power_[step] + ((power_[step + 1] - power_[step]) * rest >> 24);
    const uint64_t rank = (mantissa << (exponent >> 32) >> 32) - 1;
    return rank < n_ ? static_cast<uint32_t>(rank) : n_ - 1;
  }
  double probability(uint32_t rank) const {
    return std::log2((rank + 2.0) / (rank + 1.0)) / std::log2(n_ + 1.0);
  }

 private:
  static constexpr size_t kSteps = 256;
  static constexpr uint64_t kOne = uint64_t{1} << 32;
  uint32_t n_;
  uint64_t octaves_;
  std::array<uint64_t, kSteps + 1> power_{};
};

}  // namespace tierpilot::bench
