#include "swap/libtorch/segments.h"

#include "swap/libtorch/hash.h"

namespace tierpilot::swap::libtorch {

bool Segments::begin(uint64_t kind, int64_t input_bytes) {
  const bool ended = pass_ended_.exchange(false, std::memory_order_relaxed);
  if (ended || saved_.load(std::memory_order_relaxed) == 0) begun_.clear();
  const auto place = Hash().add(kind).add(begun_[kind]++).value();
  return tierpilot_swap_segment_begin(core_, place, input_bytes) == 1;
}

void Segments::end(bool possible) {
  tierpilot_swap_segment_end(core_, possible ? 1 : 0);
}

}  // namespace tierpilot::swap::libtorch
