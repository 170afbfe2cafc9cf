#include "swap/device/pins.h"

#include <algorithm>

namespace tierpilot::swap {

int64_t Pins::pin(std::span<std::byte> memory, int64_t offset) {
  const auto begin = offset / kPieceBytes * kPieceBytes;
  const auto end = std::min(begin + kPieceBytes, static_cast<int64_t>(memory.size()));
  const std::lock_guard lock(mutex_);
  const auto [piece, fresh] = pieces_.try_emplace(memory.data() + begin, 0);
  if (fresh && driver_.host_register(piece->first, static_cast<size_t>(end - begin),
                                     CudaDriver::kPortable) == 0)
    piece->second = end - begin;
  return end;
}

void Pins::unpin() {
  const std::lock_guard lock(mutex_);
  for (const auto& [data, bytes] : pieces_)
    if (bytes > 0) driver_.host_unregister(data);
  pieces_.clear();
}

int64_t Pins::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t sum = 0;
  for (const auto& [data, bytes] : pieces_) sum += bytes;
  return sum;
}

}  // namespace tierpilot::swap
