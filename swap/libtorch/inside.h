// Whether a thread is within a segment, in its forward pass or when it is computed again: none
// begins within another.
#pragma once

#include <utility>

namespace tierpilot::swap::libtorch {

class Inside {
 public:
  Inside() : outer_(std::exchange(now_, true)) {}
  ~Inside() { now_ = outer_; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

  static bool now() { return now_; }

 private:
  static inline thread_local bool now_ = false;
  const bool outer_;
};

}  // namespace tierpilot::swap::libtorch
