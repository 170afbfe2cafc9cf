// Seeded random numbers that are the same everywhere: the standard fixes mt19937_64, but not its
// distributions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

namespace tierpilot {

// The finalizer of splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators,
// OOPSLA 2014): one to one.
constexpr uint64_t mixed_bits(uint64_t bits) {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

// The seed of one use of a run's random numbers: streams of different purposes have nothing to do
// with each other, though users give one small number for all. FNV-1a of the purpose.
constexpr uint64_t derived_seed(uint64_t seed, std::string_view purpose) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : purpose) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mixed_bits(hash + seed * 0x9e3779b97f4a7c15);
}

class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : engine_(seed) {}
  uint64_t bits() { return engine_(); }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  bool chance(double share) { return unit() < share; }
  // 0 to bound - 1; `bound` is at most 2^32.
  uint64_t below(uint64_t bound) { return (engine_() >> 32) * bound >> 32; }
  double exponential(double mean) { return -mean * std::log1p(-unit()); }
  double log_uniform(double low, double high) {
    return low * std::exp(unit() * std::log(high / low));
  }

 private:
  std::mt19937_64 engine_;
};

// Draws 0..count-1 with probability proportional to 1 / (i + 1)^exponent.
class Zipf {
 public:
  Zipf(size_t count, double exponent) : cumulative_(count) {
    double total = 0;
    for (size_t i = 0; i < count; ++i)
      cumulative_[i] = total += std::pow(static_cast<double>(i + 1), -exponent);
  }
  size_t draw(SeededRandom& random) const {
    const double at = random.unit() * cumulative_.back();
    const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
    return std::min<size_t>(found - cumulative_.begin(), cumulative_.size() - 1);
  }

 private:
  std::vector<double> cumulative_;
};

}  // namespace tierpilot
