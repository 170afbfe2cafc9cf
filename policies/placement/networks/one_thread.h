// Networks here are small, and others compute beside them.
#pragma once

#include <ATen/Parallel.h>

namespace tierpilot {

// OpenMP keeps this number per thread: setting it once would not reach the others.
inline void use_one_thread() {
  thread_local const bool set = (at::set_num_threads(1), true);
  static_cast<void>(set);
}

}  // namespace tierpilot
