// What a kind of GPU is like, as its driver tells: what predictors compare kinds by.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace tierpilot::sharing {

// 0: not known.
struct GpuFeatures {
  std::string name;               // "Tesla V100-SXM2-16GB"
  double compute_capability = 0;  // 7.0
  uint64_t memory_bytes = 0;
  uint32_t cores = 0;         // CUDA's
  uint32_t sm_clock_mhz = 0;  // the most, of this and of the memory's
  uint32_t memory_clock_mhz = 0;
  uint32_t bus_width_bits = 0;

  auto operator<=>(const GpuFeatures&) const = default;
  // How much memory a driver keeps for itself tells no kind from another.
  bool is_like(const GpuFeatures& other) const {
    return name == other.name && cores == other.cores && sm_clock_mhz == other.sm_clock_mhz &&
           memory_clock_mhz == other.memory_clock_mhz && bus_width_bits == other.bus_width_bits;
  }

  // At most: each core multiplies and adds in a cycle.
  double float32_ops_per_s() const { return 2e6 * cores * sm_clock_mhz; }
  // At most: twice in a cycle of the memory's clock, as drivers tell it.
  double memory_bytes_per_s() const { return 2e6 / 8 * memory_clock_mhz * bus_width_bits; }
};

}  // namespace tierpilot::sharing
