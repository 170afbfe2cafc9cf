// The state of the random numbers that what is run again may draw.
#pragma once

#include <ATen/core/Tensor.h>

namespace tierpilot::swap::libtorch {

// Of the processor's, as it was when this was made.
class RandomState {
 public:
  RandomState();
  void restore() const;
  bool operator==(const RandomState& other) const { return state_.equal(other.state_); }

 private:
  at::Tensor state_;
};

// Random numbers go on behind the block as if it had not been.
class RandomAside {
 public:
  RandomAside() = default;
  ~RandomAside() { now_.restore(); }
  RandomAside(const RandomAside&) = delete;
  RandomAside& operator=(const RandomAside&) = delete;

 private:
  const RandomState now_;
};

}  // namespace tierpilot::swap::libtorch
