#include "policies/sim/view/gpus.h"

namespace tierpilot::sim {

uint32_t Gpus::free_milli() const {
  uint32_t sum = 0;
  for (uint32_t gpu = 0; gpu < count_; ++gpu)
    if (!(failed_ >> gpu & 1)) sum += free_milli_[gpu];
  return sum;
}

Gpus::Mask Gpus::choose(uint32_t milli) const {
  Mask chosen = 0;
  uint32_t missing = whole_gpus(milli);
  uint32_t least_left = kWhole + 1;
  for (uint32_t gpu = 0; gpu < count_ && missing > 0; ++gpu) {
    if (failed_ >> gpu & 1 || free_milli_[gpu] < each(milli)) continue;
    const Mask bit = Mask{1} << gpu;
    if (milli > kWhole) {
      chosen |= bit;
      --missing;
    } else if (free_milli_[gpu] - milli < least_left) {
      chosen = bit;
      least_left = free_milli_[gpu] - milli;
    }
  }
  const auto needed = static_cast<int>(whole_gpus(milli));
  return std::popcount(chosen) == needed ? chosen : 0;
}

uint32_t Gpus::times(uint32_t milli) const {
  uint32_t places = 0;  // of each(milli)
  for (uint32_t gpu = 0; gpu < count_; ++gpu)
    if (!(failed_ >> gpu & 1)) places += free_milli_[gpu] / each(milli);
  return places / whole_gpus(milli);
}

Gpus::Mask Gpus::take(uint32_t milli) {
  const Mask gpus = choose(milli);
  for (uint32_t gpu = 0; gpu < count_; ++gpu)
    if (gpus >> gpu & 1) free_milli_[gpu] = static_cast<uint16_t>(free_milli_[gpu] - each(milli));
  return gpus;
}

void Gpus::give(Mask gpus, uint32_t milli) {
  for (uint32_t gpu = 0; gpu < count_; ++gpu)
    if (gpus >> gpu & 1) free_milli_[gpu] = static_cast<uint16_t>(free_milli_[gpu] + each(milli));
}

void Gpus::set_failed(uint32_t gpu, bool failed) {
  const Mask bit = Mask{1} << gpu;
  failed_ = failed ? failed_ | bit : failed_ & ~bit;
}

}  // namespace tierpilot::sim
