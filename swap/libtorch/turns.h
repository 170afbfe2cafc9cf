// Segments take turns, in their forward passes and where they are computed again with random
// numbers or running means: threads share those.
#pragma once

#include <mutex>

namespace tierpilot::swap::libtorch {

// Taken before any other lock.
inline std::recursive_mutex& turns() {
  static auto* const mutex = new std::recursive_mutex;
  return *mutex;
}

}  // namespace tierpilot::swap::libtorch
