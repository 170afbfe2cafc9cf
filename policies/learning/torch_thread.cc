#include "policies/learning/torch_thread.h"

#include <ATen/Parallel.h>

namespace tierpilot {

void use_one_torch_thread() {
  // OpenMP keeps this number per thread: setting it in main() would not reach the others.
  at::set_num_threads(1);
}

}  // namespace tierpilot
