// The GPUs of one simulated node. A share (up to 1000 thousandths) lies on one GPU, the fullest
// that has room; more than one GPU is whole GPUs.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace tierpilot::sim {

class Gpus {
 public:
  static constexpr uint32_t kWhole = 1000;
  static constexpr uint32_t kMost = 64;
  using Mask = uint64_t;

  explicit Gpus(uint32_t count) : count_(count) { free_milli_.fill(kWhole); }

  static uint32_t whole_gpus(uint32_t milli) { return (milli + kWhole - 1) / kWhole; }
  uint32_t count() const { return count_; }
  uint32_t free_milli() const;
  bool fits(uint32_t milli) const { return choose(milli) != 0 || milli == 0; }
  // How many of these there is room for side by side; `milli` is over 0.
  uint32_t times(uint32_t milli) const;
  // Those taken; fits(milli) must hold.
  Mask take(uint32_t milli);
  void give(Mask gpus, uint32_t milli);
  // A failed GPU has no room; what it had is lost with the tasks there.
  void set_failed(uint32_t gpu, bool failed);

 private:
  Mask choose(uint32_t milli) const;
  static uint32_t each(uint32_t milli) { return milli > kWhole ? kWhole : milli; }

  uint32_t count_;
  Mask failed_ = 0;
  std::array<uint16_t, kMost> free_milli_{};
};

}  // namespace tierpilot::sim
