// Memory of tiers that is pinned, so that a GPU copies from and to it by itself. It is pinned as it
// is first used, in pieces, and once: to pin costs as much as some copies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>

#include "swap/device/cuda_driver.h"

namespace tierpilot::swap {

// From any thread, with the device's context current.
class Pins {
 public:
  static constexpr int64_t kPieceBytes = 64 << 20;

  explicit Pins(const CudaDriver& driver) : driver_(driver) {}

  // The end of the piece of `memory` in which `offset` is: a copy may not go beyond it. Pins that
  // piece; one that the driver does not pin is used as it is, and slower.
  int64_t pin(std::span<std::byte> memory, int64_t offset);
  void unpin();
  int64_t bytes() const;

 private:
  const CudaDriver& driver_;
  mutable std::mutex mutex_;
  std::map<std::byte*, int64_t> pieces_;  // bytes; 0: the driver did not
};

}  // namespace tierpilot::swap
