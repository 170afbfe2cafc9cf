// Chance by seed: every stream of numbers has a name, so that a fault that is left out changes
// nothing for those that stay.
#pragma once

#include <cstdint>
#include <string_view>

namespace tierpilot::dst {

class Random {
 public:
  Random(uint64_t seed, std::string_view stream) : state_(seed * 0x9e3779b97f4a7c15) {
    for (const char c : stream) state_ = (state_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    next();
  }

  // splitmix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(double probability) {
    return static_cast<double>(next() >> 11) * 0x1p-53 < probability;
  }

 private:
  uint64_t state_;
};

}  // namespace tierpilot::dst
