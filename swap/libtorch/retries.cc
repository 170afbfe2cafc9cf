// Steps that are run again where memory ran out.
#include <new>
#include <string_view>

#include "swap/libtorch/random_state.h"
#include "swap/libtorch/tensor_pool.h"
#include "swap/libtorch/tierpilot_swap_torch.h"

namespace tierpilot::swap {

std::shared_ptr<libtorch::RandomState> Scope::random_state() {
  return std::make_shared<libtorch::RandomState>();
}

bool Scope::ran_out_of_memory(const std::exception& error) {
  return dynamic_cast<const std::bad_alloc*>(&error) ||
         std::string_view(error.what()).find("allocate memory") != std::string_view::npos;
}

void Scope::begin_again(libtorch::RandomState& random) {
  pool_->failed();
  TORCH_WARN("tierpilot::swap: no memory: the step runs again, with everything away");
  random.restore();
}

}  // namespace tierpilot::swap
