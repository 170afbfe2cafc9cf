// The segments of the forward passes that save in one pool, as the library is told of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <unordered_map>

#include "swap/tierpilot_swap.h"

namespace tierpilot::swap::libtorch {

// One at a time; what is asked of hooks from any thread.
class Segments {
 public:
  explicit Segments(tierpilot_swap* core) : core_(core) {}

  // One begins, of those of a kind the next in its pass. Whether it is to be computed again.
  bool begin(uint64_t kind, int64_t input_bytes);
  // `possible`: to compute it again gives the same.
  void end(bool possible);

  // A backward pass asks: the next segment is the first of its pass. So it is where nothing that
  // was saved is left.
  void pass_ended() { pass_ended_.store(true, std::memory_order_relaxed); }
  void saved() { saved_.fetch_add(1, std::memory_order_relaxed); }
  void dropped() { saved_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  tierpilot_swap* const core_;
  std::unordered_map<uint64_t, uint64_t> begun_;  // of each kind in this pass
  std::atomic<bool> pass_ended_ = true;
  std::atomic<int64_t> saved_ = 0;
};

}  // namespace tierpilot::swap::libtorch
